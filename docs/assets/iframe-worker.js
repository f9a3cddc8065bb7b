// Search runs in a worker, and browsers start none for pages that are read from a disk. There, a
// hidden frame does its work: the same two calls, messages in and messages out.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      this.inside = new Promise((resolve, reject) => {
        frame.addEventListener("load", () => {
          const inside = frame.contentWindow;
          const load = (source) => new Promise((loaded, failed) => {
            const script = inside.document.createElement("script");
            script.src = new URL(source, location.href).href;
            script.addEventListener("load", loaded);
            script.addEventListener("error", failed);
            inside.document.head.appendChild(script);
          });
          inside.postMessage = (data) => setTimeout(() => this.answer(data));
          inside.importScripts = (...all) =>
            all.reduce((before, one) => before.then(() => load(one)), Promise.resolve());
          load(address).then(() => resolve(inside), reject);
        }, { once: true });
      });
      document.body.appendChild(frame);
    }

    answer(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    }

    postMessage(data) {
      this.inside.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
