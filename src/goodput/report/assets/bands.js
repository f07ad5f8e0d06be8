"use strict";
// Timeline: one row per track, coloured by class, drawn into a uPlot chart that owns axes and zoom.
(() => {
  const INCIDENTS = "incidents";
  // The canvas blends a band narrower than a pixel by its width, which is honest where there are
  // many. At least this much is drawn, so that a single one is seen.
  const LEAST_PIXELS = 0.3;

  const prepare = (track) => {
    const bands = [...track.bands].sort((a, b) => a.start_ns - b.start_ns);
    return {
      name: track.name,
      bands,
      starts: Float64Array.from(bands, (band) => band.start_ns / 1e9),
      ends: Float64Array.from(bands, (band) => band.end_ns / 1e9),
    };
  };

  // Index of the first band that ends after `s` (bands of a track do not overlap).
  const firstAfter = (ends, s) => {
    let low = 0, high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle] > s) high = middle;
      else low = middle + 1;
    }
    return low;
  };

  const isUseful = (label) => label === "useful" || label === "steps";

  report.bands = (id, { tracks, incidents }) => {
    const frame = document.getElementById(id);
    if (!frame || !tracks.length) return null;
    const rows = tracks.map(prepare);
    if (incidents.length) rows.unshift({ name: INCIDENTS, incidents });
    const rowHeight = rows.length <= 14 ? 22 : rows.length <= 42 ? 15 : 11;
    const labels = [...new Set(tracks.flatMap((track) => track.bands.map((band) => band.label)))];

    const draw = (plot) => {
      const { ctx, bbox } = plot;
      const ratio = bbox.height / rows.length;
      const perSecond = bbox.width / (report.clock.to - report.clock.from);
      const gap = Math.max(1, Math.round(ratio * 0.12));
      const colors = new Map(labels.map((label) => [label, report.color(label)]));
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      rows.forEach((row, place) => {
        const top = Math.round(bbox.top + place * ratio) + gap;
        const height = Math.round(ratio) - 2 * gap;
        const x = (s) => bbox.left + (s - report.clock.from) * perSecond;
        if (row.incidents) drawMarks(ctx, row.incidents, x, top, height);
        else {
          // Losses over useful time, so that one narrower than a pixel still tints it.
          drawBands(ctx, row, colors, x, top, height, true);
          drawBands(ctx, row, colors, x, top, height, false);
        }
      });
      ctx.restore();
    };

    const drawBands = (ctx, row, colors, x, top, height, useful) => {
      const { bands, starts, ends } = row;
      for (let i = firstAfter(ends, report.clock.from); i < bands.length && starts[i] < report.clock.to; i += 1) {
        if (isUseful(bands[i].label) !== useful) continue;
        const left = x(starts[i]);
        ctx.fillStyle = colors.get(bands[i].label);
        ctx.fillRect(left, top, Math.max(x(ends[i]) - left, LEAST_PIXELS), height);
      }
    };

    const drawMarks = (ctx, list, x, top, height) => {
      const half = Math.min(5 * devicePixelRatio, height / 2);
      for (const incident of list) {
        const at = x(incident.at_ns / 1e9);
        ctx.fillStyle = incident.planned ? report.ink("soft") : report.color("detection");
        ctx.beginPath();
        ctx.moveTo(at - half, top + height / 2 - half);
        ctx.lineTo(at + half, top + height / 2 - half);
        ctx.lineTo(at, top + height / 2 + half);
        ctx.fill();
      }
    };

    const every = Math.ceil(14 / rowHeight);
    const fit = Math.max(5, Math.floor((report.clock.gutter - 8) / 6.6));
    const short = (name) => (name.length > fit ? `${name.slice(0, fit - 1)}…` : name);
    const base = report.clock.options(frame, rows.length * rowHeight + 42);
    const tip = report.tip(frame);
    base.hooks.draw = [draw];
    base.hooks.setCursor = [(plot) => hover(plot)];
    const plot = new uPlot({
      ...base,
      scales: { x: report.clock.scale(), y: { range: [0, rows.length], dir: -1 } },
      axes: [
        report.clock.axis(),
        report.clock.side({
          grid: { show: false },
          splits: () => rows.map((_, place) => place + 0.5),
          values: (_, splits) => splits.map((_split, place) => (place % every ? "" : short(rows[place].name))),
        }),
      ],
      series: [{}, { scale: "y", show: true, stroke: "transparent", points: { show: false } }],
    }, [[report.clock.from, report.clock.to], [null, null]], frame);

    const hover = (chart) => {
      const { left, top } = chart.cursor;
      if (left < 0 || top === undefined || top < 0 || !chart.over.matches(":hover")) return tip.hide();
      const row = rows[Math.min(rows.length - 1, Math.floor(top / (chart.over.clientHeight / rows.length)))];
      const s = chart.posToVal(left, "x");
      const x = left + chart.over.offsetLeft + frame.offsetLeft;
      const y = top + chart.over.offsetTop + frame.offsetTop;
      if (row.incidents) return hoverIncident(chart, row.incidents, s, x, y);
      const found = firstAfter(row.ends, s);
      const band = row.bands[found];
      if (!band || row.starts[found] > s) return tip.hide();
      const began = row.starts[found];
      return tip.show(x, y, `${row.name}: ${band.label}`, [
        `${report.instant(began)} UTC`,
        `+${report.duration(Math.max(0, began - report.clock.offset))} after the start`,
        `lasts ${report.duration(row.ends[found] - began)}`,
        ...(band.detail ? [band.detail] : []),
      ]);
    };

    const hoverIncident = (chart, list, s, x, y) => {
      const reach = 7 / chart.over.clientWidth * (report.clock.to - report.clock.from);
      let near = null;
      for (const one of list) {
        const away = Math.abs(one.at_ns / 1e9 - s);
        if (away < reach && (!near || away < Math.abs(near.at_ns / 1e9 - s))) near = one;
      }
      if (!near) return tip.hide();
      return tip.show(x, y, `${near.number}: ${near.cause}`, [
        `${report.instant(near.at_ns / 1e9)} UTC${near.rank < 0 ? "" : `, rank ${near.rank}`}`,
        `detection ${report.duration(near.detection_ns / 1e9)}, recovery ${report.duration(near.recovery_ns / 1e9)}`,
        `restart ${report.duration(near.restart_ns / 1e9)}, rework ${report.duration(near.rework_ns / 1e9)}`,
      ]);
    };

    frame.addEventListener("mouseleave", () => tip.hide());
    report.clock.add(frame, plot);
    report.legend(frame, labels.map((label) => [label, () => report.color(label)]));
    report.numbers(frame, ["track", "class", "start (UTC)", "lasts", "detail"], () => rows.flatMap((row) => (
      row.bands || []).map((band) => [
        row.name, band.label, report.instant(band.start_ns / 1e9),
        report.duration((band.end_ns - band.start_ns) / 1e9), band.detail,
      ])));
    return plot;
  };
})();
