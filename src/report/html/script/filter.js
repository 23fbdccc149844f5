// Filter, search, and selection.
const everything = { text: "", states: [], model: "", tag: "", decision: "" };
const filter = Object.assign({}, everything, store.get("filter"));
filter.states = filter.states.filter((state) => $$(".chip").some((chip) => chip.dataset.state === state));
const words = new Map();
const without = { ł: "l", ø: "o", đ: "d", ß: "ss" };
// Without accents, and with the letters that have none: whoever looks for lodz finds Łódź.
const plain = (text) =>
  text
    .toLowerCase()
    .normalize("NFD")
    .replace(/\p{M}/gu, "")
    .replace(/[łøđß]/g, (letter) => without[letter]);
function textOf(card) {
  if (!words.has(card)) words.set(card, plain(card.textContent));
  return words.get(card);
}

function isWanted(card, searched) {
  const { notes, state, model, tags } = card.dataset;
  const { states } = filter;
  return (
    (!states.length || states.includes(state) || notes.split(" ").some((note) => states.includes(note))) &&
    (!filter.model || filter.model === model) &&
    (!filter.tag || tags.split("\n").includes(filter.tag)) &&
    (!filter.decision || filter.decision === decision(card)) &&
    searched.every((word) => textOf(card).includes(word))
  );
}
function apply() {
  const searched = plain(filter.text).split(/\s+/).filter(Boolean);
  for (const card of jobs) card.hidden = !isWanted(card, searched);
  for (const group of groups) {
    const none = $$(".card", group)
      .filter(isJob)
      .every((card) => card.hidden);
    group.hidden = none;
    for (const card of $$(".earlier", group)) card.hidden = none;
  }
  const count = jobs.filter((card) => !card.hidden).length;
  $("#count").textContent = count === jobs.length ? `${count} jobs` : `${count} of ${jobs.length} jobs`;
  $("#nothing").hidden = count > 0;
  for (const chip of $$(".chip")) chip.setAttribute("aria-pressed", filter.states.includes(chip.dataset.state));
  for (const name of ["text", "model", "tag", "decision"]) {
    const field = $("#" + name);
    if (field && field.value !== filter[name]) field.value = filter[name];
  }
  store.set("filter", filter);
  place();
}
function set(change) {
  Object.assign(filter, change);
  apply();
}
$("#text").addEventListener("input", (event) => set({ text: event.target.value }));
for (const name of ["model", "tag", "decision"]) $("#" + name)?.addEventListener("change", (event) => set({ [name]: event.target.value }));
for (const chip of $$(".chip"))
  chip.addEventListener("click", () => {
    const { state } = chip.dataset;
    const { states } = filter;
    const isOn = !states.includes(state);
    // A problem shows all of its jobs.
    const others = isOn && chip.closest(".problems") ? { ...everything } : {};
    set({ ...others, states: isOn ? [...states, state] : states.filter((other) => other !== state) });
  });
$("#clear").addEventListener("click", () => set(everything));

// Selection.
const picked = () => cards.filter((card) => $(".pick", card).checked);
function tellPicked() {
  const all = picked();
  $("#copy").hidden = !all.some(isJob);
  for (const button of $$("#picked [data-do]")) button.hidden = !all.some(isDecidable);
  $("#picked").hidden = !all.length;
  $("#how-many").textContent = `${all.length} picked`;
  $("#compare").hidden = all.filter(isPlayable).length < 2;
  $("#copied").hidden = true;
  store.set(
    "picked",
    all.map((card) => card.dataset.id),
  );
}
function pick(card, on = !$(".pick", card).checked) {
  $(".pick", card).checked = on;
  tellPicked();
}
document.addEventListener("change", (event) => {
  if (event.target.classList.contains("pick")) tellPicked();
});
$("#copy").addEventListener("click", async () => {
  const ids = picked()
    .filter(isJob)
    .map((card) => card.dataset.id);
  // One pattern for all of them, as `--select` and `--retake` take it.
  const text = ids.length === 1 ? ids[0] : `'{${ids.join(",")}}'`;
  Object.assign($("#copied"), { hidden: false, value: text });
  await copy(text, $("#copy"));
  tellCopied($("#copy"));
});
$("#drop").addEventListener("click", () => {
  for (const card of picked()) $(".pick", card).checked = false;
  tellPicked();
});
