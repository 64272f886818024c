// The script of the console: partial swaps, live parts, keys, dialogs, and the zone of the viewer.
// Every page works without it. It makes no HTML of its own: what it puts into a page was rendered by the server.

const year = 365 * 24 * 3600;
const secure = location.protocol === "https:" ? "; Secure" : "";

function tellZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";
  document.cookie = `carteiro_zone=${zone}; Path=/console; Max-Age=${year}; SameSite=Strict${secure}`;
}

// --- partial swaps: a link or form with data-swap replaces that part of the page by the one of the answer

async function swap(selector, address, { push = true } = {}) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  const found = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [there, here] = [found.querySelector(selector), document.querySelector(selector)];
  if (!answer.ok || !there || !here) return location.assign(address);
  here.replaceWith(document.adoptNode(there));
  if (push) history.pushState({ selector }, "", address);
  prepare(document.querySelector(selector));
  listen();
}

function swapByForm(event) {
  const form = event.target.closest("form[data-swap]");
  if (!form) return;
  event.preventDefault();
  // By attribute: a field named "action" hides the property of the form.
  const target = form.getAttribute("action") ?? location.pathname;
  const given = [...new FormData(form)].filter(([, text]) => text !== "");
  swap(form.dataset.swap, given.length ? `${target}?${new URLSearchParams(given)}` : target);
}

function swapByLink(event) {
  const link = event.target.closest("a[data-swap]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  swap(link.dataset.swap, link.href);
}

// --- live parts: one stream for all of them, while the page can be seen

let stream;
let heard = "";

function listen() {
  const parts = document.hidden ? [] : [...document.querySelectorAll("[data-live]")];
  const topics = [...new Set(parts.map((each) => each.dataset.live))];
  if (topics.join("\n") === heard) return;
  heard = topics.join("\n");
  stream?.close();
  stream = undefined;
  if (!topics.length) return;
  stream = new EventSource(`/console/live?${new URLSearchParams(topics.map((each) => ["topic", each]))}`);
  for (const topic of topics) {
    stream.addEventListener(topic, ({ data }) => {
      const body = new DOMParser().parseFromString(data, "text/html").body;
      for (const part of document.querySelectorAll(`[data-live="${CSS.escape(topic)}"]`)) {
        part.replaceChildren(...[...body.cloneNode(true).childNodes].map((each) => document.adoptNode(each)));
        prepare(part);
      }
    });
  }
}

// --- dialogs

let asking;

function ask(event) {
  const form = event.target.closest("form[data-confirm]");
  const dialog = document.getElementById("confirm");
  if (!form || !dialog || form.elements.confirmed) return;
  event.preventDefault();
  asking = { form, by: event.submitter };
  dialog.querySelector("h2").textContent = form.dataset.confirm;
  dialog.showModal();
}

function answer(event) {
  const value = event.target.closest("#confirm button")?.value;
  if (!value) return;
  document.getElementById("confirm").close();
  if (value !== "yes") return;
  const confirmed = Object.assign(document.createElement("input"), { type: "hidden", name: "confirmed", value: "yes" });
  asking.form.append(confirmed);
  asking.form.requestSubmit(asking.by);
}

// --- keys

function move(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement?.closest("[data-row]"));
  const next = rows[Math.min(Math.max(at + step, 0), rows.length - 1)];
  next.tabIndex = -1;
  next.focus();
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const keys = {
    "/": () => {
      const field = document.querySelector("[data-search]");
      if (field) field.focus();
      else document.querySelector('.side a[href$="/messages"]')?.click();
    },
    j: () => move(1),
    k: () => move(-1),
    "?": () => document.getElementById("keys")?.showModal(),
    Enter: () => document.activeElement.matches("[data-row]") && document.activeElement.querySelector("a")?.click(),
  };
  if (!keys[event.key]) return;
  if (event.key !== "Enter") event.preventDefault();
  keys[event.key]();
}

// --- small things

async function copy(event) {
  const button = event.target.closest("[data-copy]");
  const label = button?.textContent;
  if (!button || label === button.dataset.copied) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = button.dataset.copied;
  setTimeout(() => { button.textContent = label; }, 2000);
}

function prepare(part) {
  for (const each of part.querySelectorAll("[data-copy]")) each.hidden = !navigator.clipboard;
}

function closeMenus(event) {
  for (const each of document.querySelectorAll(".menu[open], .account[open]")) {
    if (event.key === "Escape" || (event.type === "click" && !each.contains(event.target))) each.open = false;
  }
}

// --- a search is completed by the server; a wait is counted down

let completing;

function complete(event) {
  const field = event.target.closest("[data-complete]");
  if (!field) return;
  clearTimeout(completing);
  completing = setTimeout(async () => {
    const asked = field.value;
    const answer = await fetch(`${field.dataset.complete}?${new URLSearchParams({ q: asked })}`);
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("datalist");
    if (answer.ok && found && field.value === asked) field.list?.replaceWith(document.adoptNode(found));
  }, 150);
}

function countDown() {
  for (const each of document.querySelectorAll("[data-until]")) {
    let left = Math.max(0, Math.round((new Date(each.dataset.until) - Date.now()) / 1000));
    const parts = [];
    for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]]) {
      if (left >= size) parts.push(`${Math.floor(left / size)} ${unit}`);
      left %= size;
    }
    each.textContent = parts.slice(0, 2).join(" ") || "0 s";
  }
}

setInterval(countDown, 1000);
document.addEventListener("input", complete);
tellZone();
prepare(document);
listen();
document.addEventListener("submit", ask);
document.addEventListener("submit", (event) => event.defaultPrevented || swapByForm(event));
document.addEventListener("click", swapByLink);
document.addEventListener("click", answer);
document.addEventListener("click", copy);
document.addEventListener("click", closeMenus);
document.addEventListener("keydown", closeMenus);
document.addEventListener("keydown", press);
document.addEventListener("visibilitychange", listen);
addEventListener("popstate", ({ state }) => (state?.selector ? swap(state.selector, location.href, { push: false }) : location.reload()));
addEventListener("pagehide", () => { stream?.close(); heard = ""; });
