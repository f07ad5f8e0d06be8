"use strict";
// What every report page shares: the embedded data, colours, buttons, sortable tables, tooltips.
// Text from the data reaches the page through textContent only.
const report = {};

(() => {
  const source = document.getElementById("goodput-data");
  report.text = source.textContent.trim();
  report.data = JSON.parse(report.text);

  report.make = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children.filter((child) => child !== null));
    return made;
  };

  // Colours: the sheet owns them; a hidden element turns a variable into what a canvas understands.
  const probe = report.make("span", { hidden: true });
  document.body.append(probe);
  let known = new Map();
  const resolve = (value) => {
    if (!known.has(value)) {
      probe.style.color = "";
      probe.style.color = value;
      known.set(value, getComputedStyle(probe).color);
    }
    return known.get(value);
  };
  const slug = (name) => name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "other";
  report.color = (name) => resolve(`var(--c-${slug(name)}, var(--c-unattributed))`);
  report.ink = (name) => resolve(`var(--${name})`);
  report.faded = (color, alpha) => color.replace("rgb(", "rgba(").replace(")", `, ${alpha})`);

  // Numbers, as in report/units.py.
  const two = (number) => String(number).padStart(2, "0");
  report.percent = (fraction) => {
    if (fraction === 0 || fraction === 1) return `${fraction * 100} %`;
    if (fraction > 0 && fraction < 0.0005) return "<0.1 %";
    if (fraction < 1 && fraction >= 0.9995) return ">99.9 %";
    return `${(fraction * 100).toFixed(1)} %`;
  };
  report.duration = (s) => {
    if (s === 0) return "0 s";
    if (s < 1e-3) return `${Number((s * 1e6).toPrecision(3))} us`;
    if (s < 0.9995) return `${Number((s * 1e3).toPrecision(3))} ms`;
    if (s < 59.95) return s < 9.995 ? `${s.toFixed(2)} s` : `${s.toFixed(1)} s`;
    if (s < 3600) return `${Math.floor(Math.round(s) / 60)} min ${two(Math.round(s) % 60)} s`;
    if (s < 86400) return `${Math.floor(Math.round(s / 60) / 60)} h ${two(Math.round(s / 60) % 60)} min`;
    return `${Math.floor(Math.round(s / 3600) / 24)} d ${two(Math.round(s / 3600) % 24)} h`;
  };
  report.instant = (s) => {
    const text = new Date(s * 1e3).toISOString().replace("T", " ");
    return text.slice(0, s % 1 ? 23 : 19);
  };

  // Theme: automatic, light, dark. Charts redraw on `themed`.
  const root = document.documentElement;
  const themes = ["auto", "light", "dark"];
  const themeButton = document.getElementById("b-theme");
  const announce = () => {
    known = new Map();
    document.dispatchEvent(new Event("themed"));
  };
  const setTheme = (theme) => {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
    themeButton.textContent = `Theme: ${theme}`;
    announce();
  };
  themeButton.addEventListener("click", () => {
    const now = root.dataset.theme || "auto";
    setTheme(themes[(themes.indexOf(now) + 1) % themes.length]);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", announce);
  let beforePrint = "auto";
  addEventListener("beforeprint", () => {
    beforePrint = root.dataset.theme || "auto";
    setTheme("light");
  });
  addEventListener("afterprint", () => setTheme(beforePrint));

  // JSON: copy and download.
  const said = document.getElementById("said");
  let quiet = 0;
  const say = (words) => {
    said.textContent = words;
    clearTimeout(quiet);
    quiet = setTimeout(() => { said.textContent = ""; }, 4000);
  };
  const copyBySelection = () => {
    const area = report.make("textarea", { value: report.text });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  document.getElementById("b-copy").addEventListener("click", async () => {
    let done = false;
    try {
      await navigator.clipboard.writeText(report.text);
      done = true;
    } catch {
      done = copyBySelection();
    }
    say(done ? `Copied ${Math.ceil(report.text.length / 1000)} kB of JSON` : "The browser refused to copy");
  });
  document.getElementById("b-download").addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([report.text], { type: "application/json" }));
    report.make("a", { href: address, download: `${slug(document.title).slice(0, 60)}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });

  // Sortable tables.
  const value = (row, place) => {
    const cell = row.cells[place];
    return cell.dataset.sort === undefined ? cell.textContent.toLowerCase() : Number(cell.dataset.sort);
  };
  const sortBy = (table, place) => {
    const heads = [...table.tHead.rows[0].cells];
    const head = heads[place];
    const first = head.classList.contains("num") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    heads.forEach((one) => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const keyed = [...table.tBodies[0].rows].map((row) => [value(row, place), row]);
    keyed.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
    table.tBodies[0].append(...keyed.map(([, row]) => row));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      head.querySelector("button").addEventListener("click", () => sortBy(table, place));
    });
  }

  // Legends, tooltips, and the numbers of a chart as a table (made when it is opened).
  report.legend = (plot, entries) => {
    const legend = plot.closest("figure").querySelector(".legend");
    const paint = () => legend.replaceChildren(...entries.map(([name, color, kind]) => {
      const mark = report.make("i", { className: kind || "" });
      mark.style.background = color();
      return report.make("span", {}, mark, name);
    }));
    paint();
    document.addEventListener("themed", paint);
  };
  report.tip = (plot) => {
    const box = report.make("div", { className: "tip" });
    plot.closest("figure").append(box);
    return {
      hide() { box.style.display = "none"; },
      show(x, y, title, lines, rows = []) {
        const table = report.make("table", {}, ...rows.map(([name, text, color]) => {
          const mark = report.make("i");
          mark.style.background = color;
          return report.make("tr", {}, report.make("td", {}, mark, name), report.make("td", { className: "num" }, text));
        }));
        box.replaceChildren(
          report.make("b", { textContent: title }),
          ...lines.map((line) => report.make("span", { textContent: line })),
          rows.length ? table : "",
        );
        box.style.display = "block";
        const frame = plot.closest("figure").getBoundingClientRect();
        const left = x + 16 + box.offsetWidth > frame.width ? x - 16 - box.offsetWidth : x + 16;
        box.style.left = `${Math.max(0, left)}px`;
        box.style.top = `${Math.max(0, y - box.offsetHeight / 2)}px`;
      },
    };
  };
  const MOST_ROWS = 400;
  report.numbers = (plot, heads, rowsOf) => {
    const details = plot.closest("figure").querySelector("details");
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const rows = rowsOf();
      const every = Math.ceil(rows.length / MOST_ROWS);
      const shown = rows.filter((_, place) => place % every === 0);
      const head = report.make("tr", {}, ...heads.map((text) => report.make("th", { textContent: text, scope: "col" })));
      const body = shown.map((row) => report.make("tr", {}, ...row.map((text) => report.make("td", { textContent: text }))));
      const table = report.make("table", {}, report.make("thead", {}, head), report.make("tbody", {}, ...body));
      const frame = report.make("div", { className: "scroll", tabIndex: 0 }, table);
      if (every > 1) details.append(report.make("p", { textContent: `every ${every}th of ${rows.length} rows; the JSON has all` }));
      details.append(frame);
    });
  };
})();
