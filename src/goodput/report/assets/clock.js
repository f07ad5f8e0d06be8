"use strict";
// One span of time for all charts of a page: zoom and pan by drag, wheel, touch, buttons and keys.
(() => {
  const LEAST_S = 1e-3;
  const charts = [];
  let first = 0;
  let last = 1;

  const clock = { from: 0, to: 1, offset: 0 };
  report.clock = clock;

  clock.begin = (from, to) => {
    first = from;
    last = Math.max(to, from + LEAST_S);
    clock.from = first;
    clock.to = last;
  };

  clock.set = (from, to) => {
    const width = Math.min(Math.max(to - from, LEAST_S), last - first);
    clock.from = Math.min(Math.max(from, first), last - width);
    clock.to = clock.from + width;
    for (const chart of charts) chart.plot.setScale("x", { min: clock.from, max: clock.to });
    showSpan();
  };

  clock.zoom = (factor, at = (clock.from + clock.to) / 2) => {
    clock.set(at - (at - clock.from) * factor, at + (clock.to - at) * factor);
  };
  clock.pan = (share) => {
    const by = (clock.to - clock.from) * share;
    clock.set(clock.from + by, clock.to + by);
  };
  clock.reset = () => clock.set(first, last);
  clock.isWhole = () => clock.from === first && clock.to === last;

  const showSpan = () => {
    const output = document.getElementById("span");
    if (!output) return;
    const width = report.duration(clock.to - clock.from);
    output.textContent = clock.isWhole() ? `whole run, ${width}` : `${clock.label(clock.from)} + ${width}`;
  };
  clock.label = (s) => report.instant(s);

  const keys = {
    "+": () => clock.zoom(0.5), "=": () => clock.zoom(0.5), "-": () => clock.zoom(2), "_": () => clock.zoom(2),
    ArrowLeft: () => clock.pan(-0.2), ArrowRight: () => clock.pan(0.2),
    0: clock.reset, Home: () => clock.set(first, first + clock.to - clock.from),
    End: () => clock.set(last - (clock.to - clock.from), last), Escape: clock.reset,
  };

  const timeAt = (chart, clientX) => {
    const over = chart.plot.over.getBoundingClientRect();
    return chart.plot.posToVal(Math.min(Math.max(clientX - over.left, 0), over.width), "x");
  };

  const listen = (chart) => {
    const { frame } = chart;
    frame.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
    // A plain wheel scrolls the page until the chart has been clicked: nobody gets stuck.
    frame.addEventListener("wheel", (event) => {
      if (!(event.ctrlKey || event.metaKey || document.activeElement === frame)) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) clock.pan(event.deltaX / 600);
      else clock.zoom(Math.exp(event.deltaY * 0.0022), timeAt(chart, event.clientX));
    }, { passive: false });
    touch(chart);
  };

  // One finger pans along the time axis, two zoom around their middle.
  const touch = (chart) => {
    const fingers = new Map();
    let start = null;
    const begin = () => {
      const at = [...fingers.values()];
      if (!at.length) return;
      const low = Math.min(...at), high = Math.max(...at);
      start = { middle: (low + high) / 2, gap: high - low, from: clock.from, to: clock.to };
      start.time = timeAt(chart, start.middle);
    };
    chart.frame.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "touch") return;
      fingers.set(event.pointerId, event.clientX);
      begin();
    });
    chart.frame.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      fingers.set(event.pointerId, event.clientX);
      const at = [...fingers.values()];
      const low = Math.min(...at), high = Math.max(...at);
      const scale = fingers.size > 1 && start.gap ? start.gap / Math.max(high - low, 8) : 1;
      const width = (start.to - start.from) * scale;
      const over = chart.plot.over.getBoundingClientRect();
      const place = ((low + high) / 2 - over.left) / over.width;
      clock.set(start.time - width * place, start.time + width * (1 - place));
    });
    for (const name of ["pointerup", "pointercancel"]) {
      chart.frame.addEventListener(name, (event) => {
        if (fingers.delete(event.pointerId)) begin();
      });
    }
  };

  // What a chart adds to its own uPlot options.
  clock.options = (frame, height) => ({
    width: frame.clientWidth,
    height,
    ms: 1e-3,
    tzDate: (s) => uPlot.tzDate(new Date(s * 1e3), "UTC"),
    legend: { show: false },
    padding: [6, 12, 0, 0],
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false },
      sync: { key: "time", setSeries: false, scales: ["x", null], filters: { pub: (type) => type.startsWith("mouse") && type !== "mousedown" && type !== "mouseup" } },
      bind: { dblclick: () => () => { clock.reset(); return null; } },
    },
    hooks: {
      setSelect: [(plot) => {
        const { left, width } = plot.select;
        if (width < 4) return;
        plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        clock.set(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
      }],
      ready: [(plot) => {
        plot.over.addEventListener("mousedown", () => frame.focus({ preventScroll: true }));
      }],
    },
  });
  clock.scale = () => ({ time: true, range: () => [clock.from, clock.to] });

  const pad = "{HH}:{mm}";
  const day = "\n{YYYY}-{MM}-{DD}";
  clock.axis = (extra = {}) => ({
    stroke: () => report.ink("soft"),
    grid: { stroke: () => report.ink("grid"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
    size: 36,
    gap: 4,
    space: 76,
    values: [
      [31536000, "{YYYY}", null, null, null, null, null, null, 1],
      [2419200, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
      [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
      [3600, pad, day, null, day, null, null, null, 1],
      [60, pad, day, null, day, null, null, null, 1],
      [1, `${pad}:{ss}`, day, null, day, null, null, null, 1],
      [0.001, `:{ss}.{fff}`, `\n{HH}:{mm}`, null, day, null, `\n{HH}:{mm}`, null, 1],
    ],
    ...extra,
  });
  clock.side = (extra = {}) => ({
    stroke: () => report.ink("soft"),
    grid: { stroke: () => report.ink("grid"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
    size: clock.gutter,
    gap: 6,
    ...extra,
  });

  clock.add = (frame, plot) => {
    const chart = { frame, plot };
    charts.push(chart);
    listen(chart);
    new ResizeObserver(() => {
      if (frame.clientWidth && frame.clientWidth !== plot.width) plot.setSize({ width: frame.clientWidth, height: plot.height });
    }).observe(frame);
    document.addEventListener("themed", () => plot.redraw(true, false));
    showSpan();
  };
  clock.charts = charts;

  const press = (name, act) => {
    const button = document.getElementById(name);
    if (button) button.addEventListener("click", act);
  };
  press("b-zoom-in", () => clock.zoom(0.5));
  press("b-zoom-out", () => clock.zoom(2));
  press("b-pan-left", () => clock.pan(-0.5));
  press("b-pan-right", () => clock.pan(0.5));
  press("b-zoom-reset", clock.reset);

  // A row of a table that stands for a span of time shows it.
  for (const row of document.querySelectorAll("tr[data-from]")) {
    row.tabIndex = 0;
    const show = () => {
      clock.set(Number(row.dataset.from), Number(row.dataset.to));
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      document.getElementById("time")?.scrollIntoView({ behavior: still ? "auto" : "smooth" });
    };
    row.addEventListener("click", show);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") show(); });
  }
})();
