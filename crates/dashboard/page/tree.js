"use strict";
// The tree on a canvas: a row for each run, and above it rows of its SST-log, a box for each table.
// Owns: where each table is drawn, and which is chosen. Never does: ask for data.

W.Tree = class {
  constructor(canvas, told) {
    this.canvas = canvas;
    this.told = told;
    this.boxes = [];
    this.chosen = null;
    this.seen = new Map();
    this.capacity = [];
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    canvas.addEventListener("click", (event) => {
      const place = canvas.getBoundingClientRect();
      if (!this.levels) return;
      const at = [event.clientX - place.left, event.clientY - place.top];
      this.choose(this.boxes.find((box) => at[0] >= box.x && at[0] < box.x + box.w && at[1] >= box.y && at[1] < box.y + box.h));
    });
  }

  // Each stretch of keys between the bounds of tables is as wide as the data in it.
  static axis(levels) {
    const files = levels.flatMap((level) => [...level.run, ...level.sst_log]);
    const bounds = [...new Set(files.flatMap((file) => [file.smallest_hex, file.largest_hex]))].sort();
    const place = new Map(bounds.map((bound, at) => [bound, at]));
    const rate = new Float64Array(bounds.length + 1);
    for (const file of files) {
      const from = place.get(file.smallest_hex), to = Math.max(place.get(file.largest_hex), from + 1);
      rate[from] += file.bytes / (to - from);
      if (to <= bounds.length) rate[to] -= file.bytes / (to - from);
    }
    const begin = new Float64Array(bounds.length + 1);
    let now = 0;
    for (let at = 0; at < bounds.length; at += 1) { now += rate[at]; begin[at + 1] = begin[at] + Math.max(now, 0); }
    const all = begin[bounds.length] || 1;
    return (file) => {
      const from = place.get(file.smallest_hex), to = Math.max(place.get(file.largest_hex), from + 1);
      return [begin[from] / all, begin[Math.min(to, bounds.length)] / all];
    };
  }

  // Tables of an SST-log lie as far down as newer ones are over them.
  rows(level) {
    const rows = [], newestFirst = [...level.sst_log].sort((a, b) => b.epoch - a.epoch || b.number - a.number);
    for (const file of newestFirst) {
      const [from, to] = this.axis(file);
      let below = 0;
      rows.forEach((row, at) => { if (row.spans.some((span) => from < span[1] && span[0] < to)) below = at + 1; });
      if (below === rows.length) rows.push({ isLog: true, files: [], spans: [] });
      rows[below].files.push(file);
      rows[below].spans.push([from, to]);
    }
    return [...rows, { isLog: false, files: level.run }];
  }

  show(levels, mode) {
    this.levels = levels;
    this.mode = mode;
    const now = performance.now(), numbers = new Set();
    for (const level of levels) for (const file of [...level.run, ...level.sst_log]) {
      numbers.add(file.number);
      // Tables that are there at first are not new.
      if (!this.seen.has(file.number)) this.seen.set(file.number, this.isShown ? now : now - 1e4);
    }
    for (const number of this.seen.keys()) if (!numbers.has(number)) this.seen.delete(number);
    this.isShown = true;
    this.axis = W.Tree.axis(levels);
    this.animate();
  }

  // New tables glow for a second; nothing is drawn again where nothing changes.
  animate() {
    if (this.frame) return;
    const step = () => {
      this.frame = null;
      this.draw();
      const now = performance.now();
      if ([...this.seen.values()].some((since) => now - since < 1000)) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  value(file) {
    switch (this.mode) {
      case "heat": return file.hotness;
      case "queries": return file.queries / Math.max(file.bytes, 1);
      case "bits": return 8 * file.filter_bytes / Math.max(file.entries, 1);
      case "density": return file.bytes / Math.max(file.entries, 1);
      case "tombstones": return file.tombstones / Math.max(file.entries, 1);
      default: return file.number;
    }
  }

  draw() {
    const tall = 15, gap = 3, apart = 12, left = this.canvas.clientWidth < 600 ? 62 : 128;
    const shown = this.levels.map((level) => this.rows(level));
    const height = shown.reduce((sum, rows) => sum + rows.length * (tall + gap) + apart, apart);
    const { pen, width } = W.surface(this.canvas, Math.max(height, 60));
    const files = this.levels.flatMap((level) => [...level.run, ...level.sst_log]);
    const values = files.map((file) => this.value(file)).sort((a, b) => a - b);
    const rank = new Map(values.map((value, at) => [value, at / Math.max(values.length - 1, 1)]));
    const most = Math.max(...this.levels.map((level, at) => Math.max(W.Tree.bytes(level), this.capacity[at] || 0)), 1);
    const dark = W.colour("--paper").startsWith("#1"), now = performance.now();
    this.boxes = [];
    let y = apart / 2;
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    shown.forEach((rows, at) => {
      const end = y + rows.length * (tall + gap) - gap, level = this.levels[at];
      const bar = (value) => (left - 10) * Math.sqrt(value / most);
      pen.fillStyle = W.colour("--ghost");
      pen.fillRect(0, end - tall, bar(this.capacity[at] || 0), tall);
      pen.fillStyle = W.colour("--line");
      pen.fillRect(0, end - tall, bar(W.Tree.bytes(level)), tall);
      pen.fillStyle = W.colour("--ink");
      pen.textAlign = "left";
      pen.fillText("L" + level.level + (left > 100 ? "  " + W.bytes(W.Tree.bytes(level)) : ""), 3, end - tall / 2);
      for (const row of rows) {
        pen.fillStyle = W.colour("--ghost");
        if (!row.files.length) pen.fillRect(left, y + tall / 2, width - left, 1);
        for (const file of row.files) {
          const [from, to] = this.axis(file), x = left + from * (width - left);
          const w = Math.max((to - from) * (width - left) - .5, 1.2);
          const part = rank.get(this.value(file)) || 0;
          pen.fillStyle = `hsl(${Math.round(205 - 165 * part)} ${dark ? 55 : 50}% ${dark ? 34 + 26 * part : 62 - 18 * part}%)`;
          pen.fillRect(x, y, w, tall);
          const since = now - (this.seen.get(file.number) || 0);
          if (since < 1000) {
            pen.strokeStyle = W.colour("--c4");
            pen.globalAlpha = 1 - since / 1000;
            pen.lineWidth = 2;
            pen.strokeRect(x + 1, y + 1, Math.max(w - 2, 1), tall - 2);
            pen.globalAlpha = 1;
          }
          this.boxes.push({ x, y, w, h: tall, file, level, isLog: row.isLog });
        }
        y += tall + gap;
      }
      y += apart;
    });
    const box = this.boxes.find((box) => box.file.number === this.chosen);
    if (box) {
      pen.strokeStyle = W.colour("--focus");
      pen.lineWidth = 3;
      pen.strokeRect(box.x - 1, box.y - 1, box.w + 2, box.h + 2);
    }
  }

  static bytes(level) {
    return [...level.run, ...level.sst_log].reduce((sum, file) => sum + file.bytes, 0);
  }

  choose(box) {
    this.chosen = box ? box.file.number : null;
    this.told(box);
    this.animate();
  }

  onKey(event) {
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (!step || !this.boxes.length) return;
    event.preventDefault();
    const now = this.boxes.findIndex((box) => box.file.number === this.chosen);
    if (now < 0) return this.choose(this.boxes[0]);
    if (step[0]) return this.choose(this.boxes[Math.min(Math.max(now + step[0], 0), this.boxes.length - 1)]);
    const from = this.boxes[now], middle = from.x + from.w / 2;
    const ahead = this.boxes.filter((box) => (box.y - from.y) * step[1] > 0);
    if (!ahead.length) return;
    const row = ahead.reduce((y, box) => (Math.abs(box.y - from.y) < Math.abs(y - from.y) ? box.y : y), ahead[0].y);
    const inRow = ahead.filter((box) => box.y === row);
    const away = (box) => Math.abs(box.x + box.w / 2 - middle);
    this.choose(inRow.reduce((near, box) => (away(box) < away(near) ? box : near)));
  }
};
