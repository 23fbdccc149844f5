// Large view and comparison.
const viewer = $("#viewer");
const wall = $("#wall");
const help = $("#help");
let viewed = null;

function view(card) {
  viewed = card;
  const stage = $(".stage", viewer);
  const frame = $(".frame", card);
  viewer.style.setProperty("--r", shapeOf(card));
  stage.replaceChildren(isPlayable(card) ? Object.assign(player(frame), { autoplay: true }) : ($(".none, img", frame)?.cloneNode(true) ?? ""));
  $("h2 bdi", viewer).textContent = $(".id", card).textContent;
  $(".prompt", viewer).textContent = $(".prompt", card)?.textContent ?? "";
  const facts = (list, root) => $(list, viewer).replaceChildren(...$$(root, card).map((fact) => fact.cloneNode(true)));
  facts(".about > .facts", ".facts li");
  facts("details .facts", ".more li");
  $(".found", viewer).replaceChildren(...$$(":scope > :is(.exec, .reviewed)", card).map((found) => found.cloneNode(true)));
  $("details", viewer).hidden = !$(".more", card);
  $(".decide", viewer).replaceChildren(...copyOfChoice(card));
  if (!viewer.open) viewer.showModal();
  tellChoices();
  tellViewed();
}
function tellViewed() {
  $("[data-do=pick]", viewer).setAttribute("aria-pressed", $(".pick", viewed).checked);
}
function step(by) {
  const all = shown();
  const next = all[all.indexOf(viewed) + by];
  if (next) view(next);
}

function compare() {
  const all = picked().filter(isPlayable);
  if (all.length < 2) return;
  $(".stage", wall).replaceChildren(...all.map(compared));
  wall.style.setProperty("--tall", `${comparedHeight(all.map(shapeOf))}px`);
  wall.showModal();
  tellChoices();
  $("figure", wall).focus();
}
// The height at which all videos are the largest and in sight, in as many rows as that takes. A line of words is below each.
function comparedHeight(shapes) {
  const width = innerWidth * 0.96 - 40;
  const wide = shapes.reduce((sum, shape) => sum + shape, 0);
  const heights = shapes.map((_, number) => {
    const rows = number + 1;
    const fits = (innerHeight * 0.94 - 90) / rows - 150;
    return Math.min((width - 14 * Math.ceil(shapes.length / rows)) / Math.max(wide / rows, ...shapes), fits);
  });
  return Math.max(140, Math.floor(Math.max(...heights)));
}
function compared(card) {
  const figure = document.createElement("figure");
  const caption = Object.assign(document.createElement("figcaption"), { textContent: $(".id", card).textContent });
  const facts = $(".facts", card).cloneNode(true);
  const prompt = $(".prompt", card)?.cloneNode(true) ?? "";
  figure.tabIndex = -1;
  // It scrolls, also by keys.
  if (prompt) prompt.tabIndex = 0;
  figure.style.setProperty("--r", shapeOf(card).toFixed(4));
  owners.set(figure, card);
  figure.append(Object.assign(player($(".frame", card)), { autoplay: true }), caption, facts, prompt, ...copyOfChoice(card));
  return figure;
}
function moveCompared(by) {
  const all = $$("figure", wall);
  const at = all.indexOf(document.activeElement?.closest("figure"));
  all[Math.max(0, Math.min(all.length - 1, at + by))].focus();
}

$("#compare").addEventListener("click", compare);
$("#keys").addEventListener("click", () => help.showModal());
for (const dialog of [viewer, wall, help]) {
  dialog.addEventListener("close", () => {
    $(".stage", dialog)?.replaceChildren();
    if (dialog !== help) apply();
    if (dialog === viewer) viewed?.focus();
  });
  // A selection of text that ends outside is no click on the outside.
  let pressed = null;
  dialog.addEventListener("pointerdown", (event) => (pressed = event.target));
  dialog.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if ((event.target === dialog && pressed === dialog) || button?.dataset.do === "close") dialog.close();
    if (button?.dataset.go) step(Number(button.dataset.go));
    if (button?.dataset.do === "pick") {
      pick(viewed);
      tellViewed();
    }
    if (button?.dataset.do === "restart")
      for (const video of $$("video", wall)) {
        video.currentTime = 0;
        video.play();
      }
  });
}
sheet.addEventListener("click", (event) => {
  if (event.target.closest(".open, .prompt")) view(event.target.closest(".card"));
});

// A thumb that sweeps over the large view goes from video to video.
let touched = null;
viewer.addEventListener("touchstart", (event) => (touched = event.changedTouches[0]), { passive: true });
viewer.addEventListener(
  "touchend",
  (event) => {
    const { clientX, clientY } = event.changedTouches[0];
    const x = clientX - touched.clientX;
    const y = clientY - touched.clientY;
    if (Math.abs(x) > 60 && Math.abs(x) > 2 * Math.abs(y)) step(x < 0 ? 1 : -1);
  },
  { passive: true },
);

// An option that this browser keeps.
const advance = $("#advance");
advance.checked = localValue("shotlist advance") === "true";
advance.addEventListener("change", () => keepLocally("shotlist advance", advance.checked));
