// Sorting, searching and copying; everything on the page can be read without it.
document.documentElement.classList.add("script");
document.querySelectorAll("table.list").forEach(table => {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const key = (row, place) => row.cells[place].dataset.v ?? row.cells[place].textContent;
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending", rows = [...body.rows].map(row => [key(row, place), row]);
      const order = new Intl.Collator(undefined, { numeric: true });
      rows.sort(([a], [b]) => (a === "") - (b === "") || (down ? order.compare(b, a) : order.compare(a, b)));
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows.map(([, row]) => row));
    });
  });
});
const field = document.querySelector(".search input");
if (field) {
  const count = document.querySelector(".search output"), rows = [...document.querySelectorAll("table.list tbody tr")];
  let texts, records, waiting; // read when something is first searched for
  const search = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    texts ??= rows.map(row => row.textContent.toLowerCase());
    records ??= rows.map(row => document.getElementById(row.dataset.record)?.closest("details"));
    rows.forEach((row, i) => {
      const shown = words.every(word => texts[i].includes(word));
      found += shown;
      row.classList.toggle("hidden", !shown);
      records[i]?.classList.toggle("hidden", !shown);
    });
    count.textContent = words.length ? `${found} of ${rows.length}` : "";
    document.querySelectorAll("section.question").forEach(section =>
      section.classList.toggle("hidden", !section.querySelector("tbody tr:not(.hidden)")));
  };
  field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 80); });
}
document.querySelectorAll("pre.copy").forEach(pre => {
  const around = document.createElement("div"), button = document.createElement("button");
  around.className = "copied";
  button.type = "button";
  button.textContent = "copy";
  pre.replaceWith(around);
  around.append(pre, button);
  button.addEventListener("click", async () => {
    const text = pre.textContent;
    try { await navigator.clipboard.writeText(text); } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
});
