// Embedding maps in a canvas each: zoom, hover, histograms, sliders. Used by the page and by the notebook widget.
// Everything that comes from data is shown as text, never as markup.

function decoded(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

function element(tag, parent, attributes = {}, text = "") {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}

function rgb(hex) {
  const value = parseInt(hex.slice(1), 16);
  return (255 << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16);
}

function paler(color, kept) {
  let made = 255 << 24;
  for (const shift of [0, 8, 16]) made |= Math.round(255 - kept * (255 - ((color >> shift) & 255))) << shift;
  return made;
}

class LiveMap {
  constructor(root, data, owner) {
    this.data = data;
    this.owner = owner;
    this.x = new Uint16Array(decoded(data.x).buffer);
    this.y = new Uint16Array(decoded(data.y).buffer);
    this.cosines = data.cosines ? new Int16Array(decoded(data.cosines).buffer) : null;
    this.colors = new Uint32Array(decoded(data.colors).buffer);
    const figure = element("figure", root, { class: "live-map" });
    element("figcaption", figure, { class: "live-title" }, data.title);
    element("p", figure, { class: "quiet" }, data.question);
    this.canvas = element("canvas", figure, { tabindex: "0", role: "img", "aria-label": `${data.title}. ${data.question}. Arrow keys move, plus and minus zoom, 0 shows all.` });
    if (this.cosines) this.histogram = element("canvas", figure, { class: "live-histogram", role: "img", "aria-label": `Histogram of matched cosines. ${data.title}` });
    if (this.cosines) element("p", figure, { class: "quiet live-range" }, `Matched cosine from ${owner.ends[0].toFixed(3)} to ${owner.ends[1].toFixed(3)}, ${data.count} pairs. Filled: shown.`);
    this.reset();
    this.listen();
  }

  reset() { this.scale = 1; this.left = 0; this.top = 0; }

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [px, py] = this.at(event);
      this.zoom(Math.exp(-event.deltaY * 0.0016), px, py);
    }, { passive: false });
    canvas.addEventListener("dblclick", () => { this.reset(); this.owner.draw(); });
    canvas.addEventListener("pointerdown", (event) => { this.drag = this.at(event); canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { this.drag = null; });
    canvas.addEventListener("pointerleave", () => this.owner.point(this, -1));
    canvas.addEventListener("pointermove", (event) => {
      const now = this.at(event);
      if (this.drag) {
        this.left -= (now[0] - this.drag[0]) / this.scale;
        this.top -= (now[1] - this.drag[1]) / this.scale;
        this.drag = now;
        this.owner.draw();
      } else this.owner.point(this, this.nearest(now[0], now[1]), event);
    });
    canvas.addEventListener("keydown", (event) => {
      const step = 0.1 / this.scale;
      if (event.key === "+" || event.key === "=") this.zoom(1.25, 0.5, 0.5);
      else if (event.key === "-") this.zoom(0.8, 0.5, 0.5);
      else if (event.key === "0") { this.reset(); this.owner.draw(); }
      else if (event.key.startsWith("Arrow")) {
        this.left += event.key === "ArrowLeft" ? -step : event.key === "ArrowRight" ? step : 0;
        this.top += event.key === "ArrowUp" ? -step : event.key === "ArrowDown" ? step : 0;
        this.owner.draw();
      } else return;
      event.preventDefault();
    });
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  zoom(factor, px, py) {
    const before = this.scale;
    this.scale = Math.min(400, Math.max(1, before * factor));
    this.left += px / before - px / this.scale;
    this.top += py / before - py / this.scale;
    if (this.scale === 1) this.reset();
    this.owner.draw();
  }

  shown(point) {
    return this.owner.lit === null || this.owner.lit[point % this.data.pairs] === 1;
  }

  place(point, width, height) {
    return [((this.x[point] / 65535 - this.left) * this.scale) * width, ((this.y[point] / 65535 - this.top) * this.scale) * height];
  }

  nearest(px, py) {
    const width = this.canvas.width, height = this.canvas.height;
    let best = 14 * 14 * this.owner.ratio * this.owner.ratio, found = -1;
    for (let i = 0; i < this.x.length; i++) {
      const [x, y] = this.place(i, width, height), d = (x - px * width) ** 2 + (y - py * height) ** 2;
      if (d < best && this.shown(i)) { best = d; found = i; }
    }
    return found;
  }

  draw() {
    const canvas = this.canvas, ratio = this.owner.ratio;
    const width = canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    const height = canvas.height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    const context = canvas.getContext("2d"), picture = context.createImageData(width, height);
    const pixels = new Uint32Array(picture.data.buffer), plain = Math.max(1, Math.round(this.owner.size * ratio / 2));
    // Maps stand on white, as in the figures: black is a class, too. Beside few pairs the others keep their hue, paler.
    const few = this.owner.few, dim = few ? (color) => paler(color, this.owner.data.hue_kept) : () => 0xffdcd7d3;
    for (let pass = 0; pass < 2; pass++) {
      for (let i = 0; i < this.x.length; i++) {
        const lit = this.shown(i);
        if (lit !== (pass === 1)) continue;
        const radius = lit && few ? 2 * plain : plain;
        const [fx, fy] = this.place(i, width, height), x = Math.round(fx), y = Math.round(fy);
        if (x < -radius || y < -radius || x >= width + radius || y >= height + radius) continue;
        const diamond = i >= this.data.images, color = lit ? this.colors[i] : dim(this.colors[i]);
        for (let dy = -radius; dy <= radius; dy++) {
          const half = diamond ? radius - Math.abs(dy) : Math.round(Math.sqrt((radius + 0.5) ** 2 - dy * dy) - 0.5);
          const row = y + dy;
          if (row < 0 || row >= height) continue;
          const from = Math.max(0, x - half), to = Math.min(width - 1, x + half);
          if (from <= to) pixels.fill(color, row * width + from, row * width + to + 1);
        }
      }
    }
    context.putImageData(picture, 0, 0);
    const pair = this.owner.pair;
    if (pair >= 0) for (const point of this.pointsOf(pair)) this.ring(context, ...this.place(point, width, height), (few ? 2 * plain : plain) + 4 * ratio);
    if (this.histogram) this.drawHistogram();
  }

  pointsOf(pair) {
    const found = [];
    for (let i = pair; i < this.x.length; i += this.data.pairs) found.push(i);
    return found;
  }

  ring(context, x, y, radius) {
    context.lineWidth = 2 * this.owner.ratio;
    context.strokeStyle = "#14161a";
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.stroke();
  }

  drawHistogram() {
    const canvas = this.histogram, ratio = this.owner.ratio, bins = this.owner.data.bars;
    const width = canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    const height = canvas.height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    const context = canvas.getContext("2d"), all = new Array(bins).fill(0), lit = new Array(bins).fill(0);
    const [low, high] = this.owner.ends;
    for (let i = 0; i < this.data.pairs; i++) {
      const place = Math.min(bins - 1, Math.max(0, Math.floor((this.cosines[i] / 32767 - low) / (high - low || 1) * bins)));
      all[place]++;
      if (this.shown(i)) lit[place]++;
    }
    const most = Math.max(1, ...all), bar = width / bins;
    for (let k = 0; k < bins; k++) {
      context.fillStyle = this.owner.dark ? "#6b7380" : "#8b929e";
      context.fillRect(k * bar, height * (1 - all[k] / most), bar - 1, height * all[k] / most);
      context.fillStyle = this.data.color;
      context.fillRect(k * bar, height * (1 - lit[k] / most), bar - 1, height * lit[k] / most);
    }
  }
}

class LiveMaps {
  constructor(root, data, told = () => {}) {
    this.data = data;
    this.told = told;
    this.pair = -1;
    this.lit = null;
    this.size = data.size;
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    this.dark = scheme.matches;
    this.ratio = Math.min(2, devicePixelRatio || 1);
    this.ends = data.ends;
    this.root = element("section", root, { class: "live", "aria-label": "Zoomable maps" });
    this.controls(this.root);
    const row = element("div", this.root, { class: "live-row" });
    this.maps = data.maps.map((one) => new LiveMap(row, one, this));
    this.card = element("div", this.root, { class: "live-card", role: "status", hidden: "" });
    this.legend(this.root);
    scheme.addEventListener("change", () => { this.dark = scheme.matches; this.draw(); });
    new ResizeObserver(() => this.draw()).observe(row);
    this.filter();
  }

  controls(root) {
    const row = element("div", root, { class: "live-controls" });
    const [low, high] = this.ends.map((end) => Math.round(end * 1000));
    this.low = this.slider(row, "Matched cosine from", low, high, low, () => this.filter(), 1000);
    this.high = this.slider(row, "to", low, high, high, () => this.filter(), 1000);
    this.slider(row, "Point size", 1, 12, this.size, (value) => { this.size = value; this.draw(); });
    const label = element("label", row, {}, "Captions with ");
    this.words = element("input", label, { type: "search", "aria-label": "Captions with" });
    this.words.addEventListener("input", () => this.filter());
    const reset = element("button", row, { type: "button" }, "Show all");
    reset.addEventListener("click", () => {
      this.low.value = this.low.min; this.high.value = this.high.max; this.words.value = "";
      for (const slider of [this.low, this.high]) slider.dispatchEvent(new Event("input"));
      for (const map of this.maps) map.reset();
      this.filter();
    });
    this.count = element("output", row, { class: "quiet" });
  }

  // Whole numbers: steps of .001 from an odd start end below the last value, by rounding.
  slider(row, words, low, high, value, changed, parts = 1) {
    const label = element("label", row, {}, `${words} `);
    const range = element("input", label, { type: "range", min: low, max: high, value, "aria-label": words });
    const shown = element("output", label);
    const tell = () => { shown.textContent = parts === 1 ? range.value : (range.value / parts).toFixed(3); };
    range.addEventListener("input", () => { tell(); changed(Number(range.value)); });
    tell();
    return range;
  }

  legend(root) {
    const list = element("ul", root, { class: "live-legend" });
    for (const [words, color] of this.data.legend) {
      const item = element("li", list);
      element("span", item, { class: "swatch" }).style.background = color;
      element("span", item, {}, words);
    }
    element("p", root, { class: "quiet" }, this.data.note);
  }

  filter() {
    const first = this.maps[0], pairs = first.data.pairs, words = this.words.value.toLowerCase();
    const low = this.low.value / 1000 - 1e-9, high = this.high.value / 1000 + 1e-9, lit = new Uint8Array(pairs).fill(1);
    const ranged = this.low.value !== this.low.min || this.high.value !== this.high.max;
    let count = 0;
    for (let i = 0; i < pairs; i++) {
      for (const map of this.maps) {
        if (ranged && map.cosines && (map.cosines[i] / 32767 < low || map.cosines[i] / 32767 > high)) lit[i] = 0;
      }
      if (words && !this.data.captions[i].toLowerCase().includes(words)) lit[i] = 0;
      count += lit[i];
    }
    this.lit = count === pairs ? null : lit;
    this.few = count <= this.data.few;
    this.count.textContent = `${count.toLocaleString("en")} of ${pairs.toLocaleString("en")} pairs`;
    this.draw();
  }

  point(map, point, event) {
    const pair = point < 0 ? -1 : point % map.data.pairs;
    if (pair !== this.pair) { this.pair = pair; this.draw(); this.told(pair); }
    if (pair < 0) { this.card.hidden = true; return; }
    this.card.replaceChildren();
    const picture = this.data.pictures[pair];
    if (picture) element("img", this.card, { src: `data:image/jpeg;base64,${picture}`, alt: this.data.captions[pair] });
    element("strong", this.card, {}, this.data.captions[pair]);
    if (this.data.classes[pair]) element("span", this.card, { class: "quiet" }, this.data.classes[pair]);
    for (const one of this.maps) {
      if (one.cosines) element("span", this.card, {}, `${one.data.name}: cosine ${(one.cosines[pair] / 32767).toFixed(3)}`);
    }
    this.card.hidden = false;
    const box = this.root.getBoundingClientRect();
    this.card.style.left = `${Math.min(event.clientX - box.left + 16, box.width - 220)}px`;
    this.card.style.top = `${event.clientY - box.top + 16}px`;
  }

  draw() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      if (this.maps) for (const map of this.maps) map.draw();
    });
  }
}

async function unpacked(text) {
  const stream = new Blob([decoded(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
