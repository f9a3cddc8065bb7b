// Live search, theme and copy buttons. Every page works without this.
"use strict";
(() => {
  const root = document.documentElement;
  const kept = (key, value) => {
    try {
      if (value === undefined) return localStorage.getItem(key);
      localStorage.setItem(key, value);
    } catch { /* a browser that keeps nothing */ }
    return null;
  };
  const theme = kept("theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;

  const startTheme = () => {
    const button = document.getElementById("theme");
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const dark = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      const next = (root.dataset.theme || dark) === "dark" ? "light" : "dark";
      root.dataset.theme = next;
      kept("theme", next);
    });
  };

  const copyText = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return false;
    }
  };
  const selectText = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  };
  const startCopy = (within) => {
    for (const button of within.querySelectorAll("[data-copy]")) {
      const source = button.parentElement.querySelector("code");
      button.hidden = false;
      button.addEventListener("click", async () => {
        const done = await copyText(source.textContent);
        if (!done) selectText(source);
        button.textContent = done ? "copied" : "selected";
        setTimeout(() => { button.textContent = "copy"; }, 1600);
      });
    }
  };

  // Suggestions below a field, fetched as words are typed.
  const startSearch = (input) => {
    const form = input.form;
    const list = document.createElement("div");
    list.className = "hints";
    list.hidden = true;
    list.id = input.id + "-hints";
    form.append(list);
    const status = document.createElement("span");
    status.className = "unseen";
    status.setAttribute("role", "status");
    form.append(status);
    let asked = null;
    let timer = 0;
    const close = () => { list.hidden = true; status.textContent = ""; };
    const ask = async () => {
      const words = input.value.trim();
      if (asked) asked.abort();
      if (!words) return close();
      const mine = asked = new AbortController();
      try {
        const answer = await fetch("/suggest?q=" + encodeURIComponent(words), { signal: mine.signal, credentials: "same-origin" });
        if (!answer.ok) return close();
        const html = await answer.text();
        if (mine !== asked || !form.contains(document.activeElement)) return;
        // Made by our server, which escapes; the policy of the page holds besides.
        list.innerHTML = html;
        list.hidden = false;
        const count = list.querySelectorAll("a:not(.all)").length;
        status.textContent = count === 1 ? "1 suggestion" : count + " suggestions";
      } catch (error) {
        if (error.name !== "AbortError") close();
      }
    };
    input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 60); });
    form.addEventListener("keydown", (event) => {
      const links = [...list.querySelectorAll("a")];
      const at = links.indexOf(document.activeElement);
      if (event.key === "Escape" && !list.hidden) {
        close();
        input.focus();
      } else if (event.key === "ArrowDown" && !list.hidden && links.length) {
        event.preventDefault();
        links[Math.min(at + 1, links.length - 1)].focus();
      } else if (event.key === "ArrowUp" && at >= 0) {
        event.preventDefault();
        if (at === 0) input.focus(); else links[at - 1].focus();
      }
    });
    form.addEventListener("focusout", (event) => { if (!form.contains(event.relatedTarget)) close(); });
  };

  // A link to a field opens what it is in.
  const openTarget = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target.parentElement; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
    }
    target.scrollIntoView({ block: "center" });
  };

  // A page of a control plane is loaded again when the server tells of changes.
  const startLive = () => {
    const area = document.querySelector("[data-live]");
    if (!area || !window.EventSource) return;
    const status = document.getElementById("news");
    const pulse = (lost) => {
      for (const mark of area.querySelectorAll("[data-pulse]")) {
        mark.hidden = false;
        mark.classList.toggle("lost", lost);
        mark.textContent = lost ? "waiting for the server" : "live";
      }
    };
    let shown = area.innerHTML;
    const load = async () => {
      try {
        const answer = await fetch(location.pathname, { credentials: "same-origin", cache: "no-store" });
        if (!answer.ok) return pulse(true);
        // Made by our server, which escapes; the policy of the page holds besides.
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.querySelector("[data-live]");
        if (!fresh) return;
        if (fresh.innerHTML !== shown) {
          const before = area.querySelector("[data-headline]");
          const held = area.contains(document.activeElement) && document.activeElement.getAttribute("href");
          const told = before && before.textContent;
          shown = fresh.innerHTML;
          area.replaceChildren(...fresh.childNodes);
          startCopy(area);
          const again = held && [...area.querySelectorAll("a[href]")].find((link) => link.getAttribute("href") === held);
          if (again) again.focus({ preventScroll: true });
          const headline = area.querySelector("[data-headline]");
          if (headline && headline.textContent !== told) status.textContent = headline.textContent;
        }
        pulse(false);
      } catch {
        pulse(true);
      }
    };
    const news = new EventSource(area.dataset.live);
    news.addEventListener("changed", load);
    news.addEventListener("error", () => pulse(true));
    addEventListener("pagehide", () => news.close());
  };

  document.addEventListener("DOMContentLoaded", () => {
    startTheme();
    startLive();
    startCopy(document);
    for (const id of ["find", "look"]) {
      const input = document.getElementById(id);
      if (input) startSearch(input);
    }
    openTarget();
    addEventListener("hashchange", openTarget);
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest("input, textarea, select, [contenteditable]");
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        document.getElementById("find").focus();
      }
    });
    for (const picker of document.querySelectorAll(".picker")) {
      picker.addEventListener("focusout", (event) => { if (!picker.contains(event.relatedTarget)) picker.open = false; });
    }
  });
})();
