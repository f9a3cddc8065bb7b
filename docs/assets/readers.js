// What readers with a keyboard or a screen reader need and the theme leaves out: what can be scrolled can be
// reached, and the search has a name.
document.addEventListener("DOMContentLoaded", () => {
  const reach = () => {
    for (const part of document.querySelectorAll("pre > code, .md-typeset__scrollwrap")) {
      if (part.scrollWidth > part.clientWidth) part.setAttribute("tabindex", "0");
    }
  };
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  reach();
  // Tables are wrapped by the theme's own script, and widths change with the window.
  new MutationObserver(reach).observe(document.querySelector("article"), { childList: true, subtree: true });
  window.addEventListener("resize", reach);
  window.addEventListener("load", reach);
});
