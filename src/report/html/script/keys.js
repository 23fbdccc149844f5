// Keys, the live page, and times; then everything is shown for the first time.
function move(by) {
  const all = shown();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement?.closest?.(".card"));
  const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}
// To the card above or below: the nearest in the next row.
function moveRow(by) {
  const from = document.activeElement?.closest?.(".card");
  if (!from) return move(by);
  // Of a block that it does not draw, a browser may not know where anything stands: those of the next rows are drawn while it is asked.
  const row = Math.ceil(sheet.clientWidth / (height() * 0.4));
  const all = shown();
  const at = all.indexOf(from);
  const around = all.slice(Math.max(0, at - 2 * row), at + 2 * row + 1);
  const drawn = new Set(around.map((card) => card.closest(".block")).filter(Boolean));
  for (const block of drawn) block.style.contentVisibility = "visible";
  const { left, top } = from.getBoundingClientRect();
  const boxes = around.map((card) => ({ card, box: card.getBoundingClientRect() }));
  const others = boxes.filter(({ box }) => (box.top - top) * by > 8);
  const distance = Math.min(...others.map(({ box }) => (box.top - top) * by));
  const off = ({ box }) => Math.abs(box.left - left);
  const [next] = others.filter(({ box }) => (box.top - top) * by < distance + 60).sort((a, b) => off(a) - off(b));
  next?.card.focus({ preventScroll: true });
  next?.card.scrollIntoView({ block: "nearest" });
  for (const block of drawn) block.style.contentVisibility = "";
}
function playOrPause(root) {
  const video = $("video", root);
  if (video?.paused) video.play();
  else video?.pause();
}

document.addEventListener("keydown", (event) => {
  const { target, key } = event;
  const hasControl = event.ctrlKey || event.metaKey;
  if (hasControl && key === "p") {
    event.preventDefault();
    return printAll();
  }
  if (target.matches(".note") && (key === "Escape" || (key === "Enter" && hasControl))) {
    event.preventDefault();
    return leaveNote(target);
  }
  if (hasControl || event.altKey) return;
  if (key === "Escape" && menu.open) {
    menu.open = false;
    return $("summary", menu).focus();
  }
  if (key === "Escape" && target.id === "text") {
    set({ text: "" });
    return target.blur();
  }
  if (target.matches("input:not(.pick), select, textarea")) return;
  const figure = wall.open ? document.activeElement?.closest("figure") : null;
  const card = viewer.open ? viewed : figure ? owners.get(figure) : document.activeElement?.closest?.(".card");
  const root = viewer.open ? viewer : (figure ?? card);
  const sideways = viewer.open ? step : wall.open ? moveCompared : move;
  const isOnControl = target.matches("button, a, video, summary, .pick");
  const acts = {
    ArrowRight: () => sideways(1),
    ArrowLeft: () => sideways(-1),
    ArrowDown: () => moveRow(1),
    ArrowUp: () => moveRow(-1),
    j: () => move(1),
    k: () => move(-1),
    1: () => card && toggle(card, "keep"),
    2: () => card && toggle(card, "retake"),
    n: () => card && openNote(root),
    t: () => card && noteTime(root),
    "/": () => $("#text").focus(),
    "?": () => help.showModal(),
    c: compare,
    x: () => {
      if (card) pick(card);
      if (viewer.open) tellViewed();
    },
    a: () => {
      for (const one of shown()) $(".pick", one).checked = true;
      tellPicked();
    },
    Enter: () => !isOnControl && card && view(card),
    " ": () => root && playOrPause(root),
  };
  // In the large view the arrows go from video to video; in a card they go through the video that has the focus.
  const isForCompared = ["ArrowRight", "ArrowLeft", "1", "2", "n", "t", " "].includes(key);
  const isForVideo = !viewer.open && target.matches("video") && key.startsWith("Arrow");
  if (help.open || who.open || (wall.open && !isForCompared) || !(key in acts) || isForVideo) return;
  if (isOnControl && (key === "Enter" || key === " ")) return;
  event.preventDefault();
  acts[key]();
});

// Live: the page is read again while nothing plays, and what was set stays set.
const live = $("#live");
let timer = null;
function readAgain() {
  if ($("dialog[open]") || $$("video").some((video) => !video.paused)) return;
  store.set("scroll", scrollY);
  location.reload();
}
function keepLive(on) {
  live.setAttribute("aria-pressed", on);
  store.set("live", on);
  clearInterval(timer);
  if (on) timer = setInterval(readAgain, 15000);
}
live.addEventListener("click", () => keepLive(live.getAttribute("aria-pressed") !== "true"));
if (store.get("live")) {
  keepLive(true);
  scrollTo(0, store.get("scroll") ?? 0);
}

// Times as they are here; what is written in the page is UTC.
for (const time of $$("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) continue;
  const isToday = at.toDateString() === new Date().toDateString();
  time.title = at.toISOString().replace("T", " ").slice(0, 19) + " UTC";
  time.textContent = (isToday ? "today, " : "") + at.toLocaleString(undefined, { ...(!isToday && { dateStyle: "medium" }), timeStyle: "short" });
}

const menu = $(".menu");
document.addEventListener("click", (event) => {
  if (!menu.contains(event.target) || event.target.closest("button")) menu.open = false;
});

const before = new Set(store.get("picked") ?? []);
for (const card of cards) $(".pick", card).checked = before.has(card.dataset.id);
tellPicked();
tellChoices();
apply();
