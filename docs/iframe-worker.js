// Browsers run no workers for pages that are read from disk. A hidden frame stands in for the one
// that searches, so that search works there, too. The theme would fetch such a script instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<body></body>";
      this.inside = new Promise((resolve) => {
        frame.onload = () => resolve(this.#start(frame.contentWindow, url));
      });
      document.body.append(frame);
    }

    #start(inside, url) {
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = url;
      inside.document.body.append(script);
      return new Promise((resolve) => {
        script.onload = () => resolve(inside);
      });
    }

    async postMessage(data) {
      const inside = await this.inside;
      inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    }
  };
}
