"use strict";
/* Live progress: the part of the page that says how far an audit is, fetched again and put in its place. Without this
   script the page reloads itself. */
(() => {
  const part = document.querySelector("[data-live]");
  if (!part) return;
  const said = document.querySelector("[data-said]");
  const shortest = 2000, longest = 60000;
  let waits = shortest;
  const look = async () => {
    const answer = await fetch(part.dataset.live, { redirect: "error" });
    if (!answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("[data-live]"), words = page.querySelector("[data-said]");
    if (!fresh || fresh.dataset.ended) return location.reload();
    // What has not changed is left alone, so that it is not read out again.
    if (words.textContent !== said.textContent) said.textContent = words.textContent;
    if (fresh.innerHTML !== part.innerHTML) part.replaceChildren(...fresh.childNodes);
  };
  const again = async () => {
    if (document.visibilityState === "visible") {
      try {
        await look();
        waits = shortest;
      } catch {
        waits = Math.min(2 * waits, longest);
      }
    }
    setTimeout(again, waits);
  };
  setTimeout(again, waits);
})();
