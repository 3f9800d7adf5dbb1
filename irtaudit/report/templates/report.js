"use strict";
// Everything here is comfort: the page is complete without it.

for (const box of document.querySelectorAll(".table")) {
  const body = box.querySelector("tbody");
  const rows = [...body.rows];
  if (rows.length > 1) makeSortable(box, body, rows);
  if (rows.length > 7) makeFilterable(box, rows);
  sayIfWider(box);
}
document.documentElement.classList.add("scripted");
addEventListener("hashchange", openTarget);
openTarget();
for (const button of document.querySelectorAll("[popovertarget]")) showOnHover(button);

function makeSortable(box, body, rows) {
  const heads = [...box.querySelectorAll("thead th")];
  heads.forEach((head, at) => {
    const label = head.querySelector(".head");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(label.textContent);
    label.replaceWith(button);
    button.addEventListener("click", () => {
      const numeric = head.classList.contains("n");
      const current = head.getAttribute("aria-sort");
      const direction = current ? (current === "ascending" ? "descending" : "ascending")
        : (numeric ? "descending" : "ascending");
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", direction);
      body.append(...ordered(rows, at, numeric, direction === "ascending" ? 1 : -1));
    });
  });
}

function ordered(rows, at, numeric, sign) {
  const collator = new Intl.Collator(undefined, { numeric: true });
  const key = (row) => {
    const cell = row.cells[at];
    if (!numeric) return cell.textContent;
    return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);  // not defined: last, either way
    return sign * (numeric ? a - b : collator.compare(a, b));
  };
  return rows.map((row) => [key(row), row]).sort((a, b) => compare(a[0], b[0])).map((pair) => pair[1]);
}

function makeFilterable(box, rows) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  const shown = document.createElement("output");
  input.type = "search";
  label.className = "filter";
  label.append("Filter rows ", input);
  const texts = rows.map((row) => plain([...row.cells].map((cell) => cell.textContent).join(" ")));
  const apply = () => {
    const words = plain(input.value).split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, i) => {
      row.hidden = !words.every((word) => texts[i].includes(word));
      count += !row.hidden;
    });
    shown.textContent = count === rows.length ? `${count} rows` : `${count} of ${rows.length} rows`;
  };
  input.addEventListener("input", apply);
  box.querySelector(".tools").prepend(label, shown);
  apply();
}

function plain(text) {
  return text.toLocaleLowerCase().replaceAll("\u2212", "-").replaceAll(",", "");
}

function sayIfWider(box) {
  const note = box.querySelector(".overflow");
  const scroll = box.querySelector(".scroll");
  if (!note) return;
  new ResizeObserver(() => {
    note.hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
  }).observe(scroll);
}

function openTarget() {
  const id = decodeURIComponent(location.hash.slice(1));
  const target = id && document.getElementById(id);
  if (!target || target.tagName !== "DETAILS") return;
  for (let node = target; node; node = node.parentElement?.closest("details")) node.open = true;
  target.scrollIntoView({ block: "center" });
}

function showOnHover(button) {
  const tip = document.getElementById(button.getAttribute("popovertarget"));
  if (!tip?.showPopover) return;
  let timer;
  button.addEventListener("pointerenter", (event) => {
    if (event.pointerType !== "mouse") return;
    timer = setTimeout(() => tip.matches(":popover-open") || tip.showPopover({ source: button }), 250);
  });
  button.addEventListener("pointerleave", (event) => {
    clearTimeout(timer);
    if (event.pointerType === "mouse" && tip.matches(":popover-open")) tip.hidePopover();
  });
}
