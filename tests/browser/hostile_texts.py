"""Texts that try to be more than texts."""

from __future__ import annotations

#: Markup that would run in one place or another, what a template language would compute, and what deceives the eye.
CORPUS = (
    "</title></style></script><script>window.ran=1</script>",
    "\"'><img src=//192.0.2.1/x onerror=window.ran=1>",
    "<svg/onload=window.ran=1><iframe srcdoc='<script>parent.ran=1</script>'>",
    "' autofocus onfocus=window.ran=1 x='",
    "javascript:window.ran=1",
    "</textarea><form action=//192.0.2.1><button formaction=javascript:window.ran=1>",
    "{{7*191}}{%if 1%}${7*191}",
    "<!--<base href=//192.0.2.1/>-->&lt;script&gt;",
    "\u202e\u2066\u200b\u0007\u001b[31m\u2028",
)
PAYLOAD = "".join(CORPUS)
