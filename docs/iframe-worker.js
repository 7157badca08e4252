/* SPDX-License-Identifier: Apache-2.0 */
/* A page from a disk may start no worker, and the search is one: its script runs in a hidden frame instead. By the name
   of this file Material's offline plugin sees that it need not have one fetched from elsewhere. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const answers = '<script>postMessage = (message) => parent.postMessage(message, "*")</script>';
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = `${answers}<script src="${new URL(url, location)}"></script>`;
      this.loaded = new Promise((resolve) => this.frame.addEventListener("load", resolve));
      window.addEventListener("message", ({ source, data }) => {
        if (source === this.frame.contentWindow) this.dispatchEvent(new MessageEvent("message", { data }));
      });
      document.body.append(this.frame);
    }

    postMessage(message) {
      const told = new MessageEvent("message", { data: message });
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(told)); // its postMessage is for answers
    }

    terminate() {
      this.frame.remove();
    }
  };
}
