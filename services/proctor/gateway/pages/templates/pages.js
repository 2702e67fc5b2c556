"use strict";
/* Live progress: the part of the page that says how far an audit is, fetched again and put in its place. Without this
   script the page reloads itself. */
(() => {
  const part = document.querySelector("[data-live]");
  if (!part) return;
  let waits = 2000;
  const again = async () => {
    if (document.visibilityState === "visible") {
      try {
        const answer = await fetch(part.dataset.live, { headers: { accept: "text/html" }, redirect: "error" });
        if (answer.ok) {
          const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-live]");
          if (!fresh || fresh.dataset.ended) return location.reload();
          if (fresh.innerHTML !== part.innerHTML) part.replaceChildren(...fresh.childNodes);
          waits = 2000;
        } else waits = Math.min(waits * 2, 60000);
      } catch {
        waits = Math.min(waits * 2, 60000);
      }
    }
    setTimeout(again, waits);
  };
  setTimeout(again, waits);
})();
