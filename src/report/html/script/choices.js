// Choices: keep, retake or nothing, and a note. They stay in this browser, under the name of the batch, until they are saved. A choice is about the video
// that was looked at: once the card shows that of another task, only its note is left.
const { name, batch = "" } = document.body.dataset;
const kept = `shotlist choices ${JSON.stringify([name, batch])}`;
const choices = (() => {
  try {
    return JSON.parse(localStorage.getItem(kept)) ?? {};
  } catch {
    return {};
  }
})();
// Tells two reviewers without a name apart.
const browser =
  localValue("shotlist browser") ?? [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
keepLocally("shotlist browser", browser);

// The cards of the takes of a job: its own, and those of its other videos.
const takesOf = new Map();
for (const card of cards) takesOf.set(jobOf(card), [...(takesOf.get(jobOf(card)) ?? []), card]);

// One choice for each job, about one of its takes. Until there is one, what the ledger has counts.
function chosen(card) {
  const made = choices[jobOf(card)];
  const recorded = { choice: card.dataset.recorded ?? "" };
  if (!made) return recorded;
  const about = takesOf.get(jobOf(card)).find(({ dataset }) => dataset.task === made.task);
  // Its video was retaken or is gone: the choice is spent, and the note stays.
  if (!about || (made.choice === "retake" && !isJob(about))) return isJob(card) ? { ...recorded, note: made.note } : recorded;
  if (about === card) return (made.choice || isMine(card)) && !isTold(card) ? made : { ...made, ...recorded };
  return made.choice && !isTold(card) ? {} : recorded;
}
// Once the ledger has the own choice, it also has those of others: a conflict, or the decision that ended it.
function isTold(card) {
  const made = choices[jobOf(card)];
  if (!card.dataset.recorded) return false;
  const { at = Infinity } = lastSaved();
  return Date.parse(document.lastModified) > at && made.choice && made.choice === savedChoice(jobOf(card));
}
const isDecidable = (card) => Boolean($("[data-choose=keep]", card));
const choiceOf = (card) =>
  takesOf
    .get(card.dataset.id)
    .map((take) => chosen(take).choice)
    .find(Boolean) ?? "";
const decision = (card) => (isDecidable(card) ? choiceOf(card) || "none" : "");

// No reviewer signs for another: a note on another's choice repeats no choice, and only the own one can be withdrawn.
const me = () => $("#by").value.trim() || `unnamed-${browser.slice(0, 6)}`;
const isMine = (card) => (card.dataset.reviewers ?? "").split(", ").includes(me());
const own = (choice) =>
  jobs.filter(({ dataset }) => choices[dataset.id]?.choice === choice && takesOf.get(dataset.id).some((take) => ownOf(take).choice === choice));
function ownOf(card) {
  const made = choices[jobOf(card)];
  if (made?.choice && made.task === card.dataset.task && (isJob(card) || made.choice !== "retake")) return made;
  const shown = chosen(card);
  return shown === made || isMine(card) ? shown : { note: shown.note };
}

function choose(card, change) {
  const id = jobOf(card);
  const { task, recorded } = card.dataset;
  choices[id] = { ...ownOf(card), task, ...change };
  // Also one that was saved here, and that this page does not have yet.
  const isWithdrawn = (recorded && isMine(card)) || savedChoice(id);
  if (!choices[id].choice && !choices[id].note && !isWithdrawn) delete choices[id];
  tellChoices();
  if ("choice" in change) leaveDecided(card);
}
// A decision may take its card out of the filter: then the next one has the keys.
function leaveDecided(card) {
  if (!filter.decision || viewer.open || wall.open) return;
  const hadFocus = card.contains(document.activeElement);
  const next = shown()[shown().indexOf(card) + 1];
  apply();
  if (hadFocus && card.hidden) next?.focus();
}
function toggle(card, choice) {
  if (!$(`[data-choose=${choice}]`, card)) return;
  const isOn = ownOf(card).choice !== choice;
  choose(card, { choice: isOn ? choice : "" });
  if (isOn && viewer.open && $("#advance").checked) step(1);
}

// The same buttons and note, in the large view or under a video that is compared.
const owners = new WeakMap();
const ownerOf = (element) => owners.get(element.closest(".choice, figure")) ?? element.closest(".card");
function copyOfChoice(card) {
  const copy = $(".choice", card)?.cloneNode(true);
  if (!copy) return [];
  owners.set(copy, card);
  return [copy];
}
// A button is pressed by the own choice. What others chose stands in words, and around the card.
function tellChoice(bar, card) {
  const { choice, note = "" } = ownOf(card);
  for (const button of $$("[data-choose=keep], [data-choose=retake]", bar)) button.setAttribute("aria-pressed", button.dataset.choose === choice);
  const field = $(".note", bar);
  if (field.value !== note) field.value = note;
  const button = $("[data-choose=note]", bar);
  button.dataset.has = Boolean(note);
  button.textContent = note ? "Noted" : "Note";
  button.title = note;
  button.setAttribute("aria-expanded", !field.hidden);
}

// Notes.
function openNote(root) {
  const field = $(".note", root);
  if (!field) return null;
  field.hidden = false;
  tellChoices();
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
  return field;
}
function leaveNote(field) {
  field.hidden = true;
  tellChoices();
  const root = field.closest("figure, .card");
  if (root) root.focus();
  else $("[data-choose=note]", field.parentElement).focus();
}
// `0:07`, where the video is now.
function noteTime(root) {
  const video = $("video", root);
  const field = video && openNote(root);
  if (!field) return;
  const seconds = Math.floor(video.currentTime);
  const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} `;
  field.value += (field.value && !field.value.endsWith("\n") ? "\n" : "") + time;
  choose(ownerOf(field), { note: field.value });
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-choose]");
  for (const field of $$(".note:not([hidden])")) if (!field.parentElement.contains(event.target)) field.hidden = true;
  if (!button) return;
  const field = $(".note", button.parentElement);
  if (button.dataset.choose !== "note") toggle(ownerOf(button), button.dataset.choose);
  else if (field.hidden) openNote(button.parentElement);
  else leaveNote(field);
});
document.addEventListener("input", (event) => {
  if (event.target.classList.contains("note")) choose(ownerOf(event.target), { note: event.target.value });
});
for (const button of $$("#picked [data-do]"))
  button.addEventListener("click", () => {
    for (const card of picked()) if ($(`[data-choose=${button.dataset.do}]`, card)) choose(card, { choice: button.dataset.do });
  });

function tellChoices() {
  for (const card of cards) {
    card.dataset.choice = chosen(card).choice ?? "";
    if ($(".choice", card)) tellChoice($(".choice", card), card);
  }
  for (const bar of $$("dialog .choice")) tellChoice(bar, ownerOf(bar));
  const decisions = jobs.map(decision);
  for (const option of $$("#decision option:not([value=''])"))
    option.textContent = `${option.value === "none" ? "undecided" : option.value} (${decisions.filter((one) => one === option.value).length})`;
  $("#decision").hidden = !decisions.some(Boolean);
  keepLocally(kept, JSON.stringify(choices));
  tellSaved();
}
