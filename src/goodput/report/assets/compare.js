"use strict";
// Charts of a comparison: one line per run over the time since its start and over its steps.
(() => {
  const runs = JSON.parse(document.getElementById("goodput-curves").textContent);
  const color = (place) => report.ink(`r-${place % 6}`);
  let drawn = 0;

  const rolling = (run) => {
    const windows = Math.max(1, Math.min(run.useful.length, Math.max(3, Math.round(run.useful.length / 20))));
    let good = 0, bought = 0;
    return run.useful.map((amount, i) => {
      good += amount - (i >= windows ? run.useful[i - windows] : 0);
      bought += run.capacity[i] - (i >= windows ? run.capacity[i - windows] : 0);
      return bought > 0 ? Math.min(1, Math.max(0, good / bought)) : null;
    });
  };

  // Sorted by x with the last value of equal ones: what uPlot.join needs.
  const table = (xs, ys) => {
    const found = new Map(xs.map((x, i) => [x, ys[i]]));
    const keys = [...found.keys()].sort((a, b) => a - b);
    return [keys, keys.map((key) => found.get(key))];
  };

  const NICE_S = [1, 2, 5, 10, 30].flatMap((s) => [s, s * 60]).concat(
    [1, 2, 4, 6, 12, 24, 48, 96, 168, 336, 672, 1344].map((h) => h * 3600)).sort((a, b) => a - b);

  // Runs of very different length are compared by the share of each that has passed.
  const UNEQUAL = 4;
  const ends = (tables) => tables.map(([xs]) => xs[xs.length - 1] || 0).filter((end) => end > 0);
  const isUnequal = (tables) => Math.max(...ends(tables)) > UNEQUAL * Math.min(...ends(tables));
  const asShare = ([xs, ys]) => [xs.map((x) => x / (xs[xs.length - 1] || 1)), ys];

  const lines = (id, given, { xText: xTextGiven, yText, yRange, head: headGiven, incrs, noun }) => {
    const shares = isUnequal(given);
    const tables = shares ? given.map(asShare) : given;
    const xText = shares ? (x) => `${Number((x * 100).toFixed(1))} %` : xTextGiven;
    const head = shares ? (x) => `${(x * 100).toFixed(1)} % of ${noun}` : headGiven;
    const frame = document.getElementById(id);
    if (!frame || !tables.some(([xs]) => xs.length)) return;
    const data = uPlot.join(tables.map((one) => (one[0].length ? one : [[0], [null]])));
    const tip = report.tip(frame);
    const axis = (extra) => ({
      stroke: () => report.ink("soft"), grid: { stroke: () => report.ink("grid"), width: 1 },
      ticks: { show: false }, font: "12px system-ui, sans-serif", gap: 5, ...extra,
    });
    // Runs have their own points: at an x between two of them, the one before holds.
    const valueAt = (place, x) => {
      const [xs, ys] = tables[place];
      let at = -1;
      for (let low = 0, high = xs.length - 1; low <= high;) {
        const middle = (low + high) >> 1;
        if (xs[middle] <= x) { at = middle; low = middle + 1; } else high = middle - 1;
      }
      return at < 0 || x > xs[xs.length - 1] ? null : ys[at];
    };
    const plot = new uPlot({
      width: frame.clientWidth, height: 230, legend: { show: false }, padding: [8, 26, 0, 0],
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: yRange } },
      axes: [
        axis({ size: 30, space: 90, ...(shares || !incrs ? {} : { incrs }), values: (_, splits) => splits.map(xText) }),
        axis({ size: 68, space: 36, values: (_, splits) => splits.map(yText) }),
      ],
      series: [{}, ...runs.map((run, place) => ({
        label: run.name, stroke: () => color(place), width: place ? 1.6 : 2.2, spanGaps: true, points: { show: false },
      }))],
      hooks: {
        setCursor: [(chart) => {
          const { left, top } = chart.cursor;
          if (left < 0 || !chart.over.matches(":hover")) return tip.hide();
          const x = chart.posToVal(left, "x");
          const rows = runs.map((run, place) => [run.name, valueAt(place, x), color(place)])
            .filter(([, y]) => y !== null)
            .map(([name, y, mark]) => [name, yText(y), mark]);
          return tip.show(left + chart.over.offsetLeft + frame.offsetLeft, top + chart.over.offsetTop + frame.offsetTop, head(x), [], rows);
        }],
      },
    }, data, frame);
    frame.addEventListener("mouseleave", () => tip.hide());
    document.addEventListener("themed", () => plot.redraw(true, false));
    new ResizeObserver(() => {
      if (frame.clientWidth && frame.clientWidth !== plot.width) plot.setSize({ width: frame.clientWidth, height: plot.height });
    }).observe(frame);
    report.legend(frame, [
      ...runs.map((run, place) => [run.name, () => color(place), "stroke"]),
      ...(shares ? [[`by the share of ${noun} that has passed`, () => "transparent", "none"]] : []),
    ]);
    report.numbers(frame, ["run", "at", "value"], () => runs.flatMap((run, place) => (
      tables[place][0].map((x, i) => [run.name, xText(x), tables[place][1][i] === null ? "-" : yText(tables[place][1][i])]))));
    drawn += 1;
  };

  const whole = (number) => Math.round(number).toLocaleString("en");
  lines("c-goodput", runs.map((run) => table(run.after_s, rolling(run))), {
    xText: report.duration, yText: report.percent, yRange: [0, 1], head: (s) => `${report.duration(s)} after the start`,
    incrs: NICE_S, noun: "each run",
  });
  lines("c-steptime", runs.map((run) => table(run.first_step, run.median_s)), {
    xText: whole, yText: report.duration, yRange: (_, low, high) => [0, (high || 1) * 1.1], head: (step) => `step ${whole(step)}`,
    noun: "the steps of each run",
  });
  document.documentElement.dataset.charts = String(drawn);
})();
