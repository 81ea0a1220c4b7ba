"use strict";
// Numbers as text, colours, and line charts. Owns: how a value looks. Never does: ask for one.
const W = {};

W.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
W.palette = () => ["--c0", "--c1", "--c2", "--c3", "--c4"].map(W.colour);

W.number = (value) => {
  if (!Number.isFinite(value)) return "–";
  const units = [[1e9, " G"], [1e6, " M"], [1e3, " k"]];
  for (const [size, unit] of units) if (Math.abs(value) >= size) return (value / size).toPrecision(3) + unit;
  return Number.isInteger(value) ? String(value) : value.toPrecision(3);
};

W.bytes = (value) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return (unit && value < 100 ? value.toFixed(1) : Math.round(value)) + " " + units[unit];
};

W.micros = (ns) => (ns >= 1e9 ? (ns / 1e9).toFixed(2) + " s" : ns >= 1e6 ? (ns / 1e6).toFixed(1) + " ms" : (ns / 1e3).toFixed(ns < 1e4 ? 1 : 0) + " µs");

// A key as text where it is text, else as hexadecimal digits; never as markup.
W.key = (hex) => {
  if (hex.length > 96) return W.key(hex.slice(0, 96)) + "…";
  const codes = (hex.match(/../g) || []).map((pair) => parseInt(pair, 16));
  const isText = codes.length > 0 && codes.every((code) => code >= 32 && code < 127);
  return isText ? "“" + String.fromCharCode(...codes) + "”" : codes.length ? "0x" + hex : "“”";
};

// A canvas of as many points as the screen has, and its size in the page's pixels.
W.surface = (canvas, height) => {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (height) canvas.style.height = height + "px";
  const tall = height || canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(tall * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(tall * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, tall);
  return { pen, width, height: tall };
};

W.legend = (place, names) => {
  if (place.childElementCount === names.length) return;
  place.replaceChildren(...names.map((name, at) => {
    const item = document.createElement("span");
    item.textContent = name;
    item.style.setProperty("--swatch", "var(--c" + (at % 7) + ")");
    return item;
  }));
};

// Lines, or stacked bars, of the last points: `points` are arrays of one number for each series.
W.chart = (canvas, points, { bars = false, text = W.number, least = 1, log = false } = {}) => {
  const { pen, width, height } = W.surface(canvas);
  const palette = W.palette(), room = Math.min(Math.max(points.length, 60), 300), left = 58, top = 8, bottom = height - 6;
  const most = (point) => bars ? point.reduce((sum, value) => sum + value, 0) : Math.max(...point, 0);
  const peak = points.reduce((peak, point) => Math.max(peak, most(point)), least);
  const scale = (value) => log ? Math.log1p(value) / Math.log1p(peak) : value / peak;
  const x = (at) => left + (width - left - 4) * (at + room - points.length) / (room - 1);
  const y = (value) => bottom - (bottom - top) * scale(value);
  pen.font = "12px system-ui, sans-serif";
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const part of [0, .5, 1]) {
    const value = log ? Math.expm1(part * Math.log1p(peak)) : part * peak;
    pen.fillStyle = W.colour("--quiet");
    pen.fillText(text(value), left - 6, y(value));
    pen.fillStyle = W.colour("--line");
    pen.fillRect(left, Math.round(y(value)), width - left, 1);
  }
  const series = points.length ? points[0].length : 0;
  if (bars) {
    const wide = Math.max(1, (width - left) / room);
    points.forEach((point, at) => {
      let sum = 0;
      point.forEach((value, of) => {
        pen.fillStyle = palette[of % palette.length];
        pen.fillRect(x(at), y(sum + value), wide, y(sum) - y(sum + value));
        sum += value;
      });
    });
    return;
  }
  for (let of = 0; of < series; of += 1) {
    pen.strokeStyle = palette[of % palette.length];
    pen.lineWidth = 1.6;
    pen.setLineDash([[], [6, 3], [2, 2], [8, 2, 2, 2], [1, 3]][of % 5]);
    pen.beginPath();
    points.forEach((point, at) => at ? pen.lineTo(x(at), y(point[of])) : pen.moveTo(x(at), y(point[of])));
    pen.stroke();
  }
  pen.setLineDash([]);
};
