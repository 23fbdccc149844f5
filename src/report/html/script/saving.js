// Saving: a file for `shotlist choose` or `shotlist run --retake`, with the name of who decided.
//
// Each save has a file of its own. Under one name, a browser would call the second `choices (1).json`, and the command would buy what the first one asked
// for.
const saved = $("#saved");
function lastSaved() {
  try {
    return JSON.parse(localValue(kept + " saved")) ?? { number: 0 };
  } catch {
    return { number: 0 };
  }
}
const fileOf = (number) => (number > 1 ? `choices-${number}.json` : "choices.json");

function saveable() {
  const reviewer = $("#by").value.trim();
  const ofJobs = (value) =>
    Object.fromEntries(
      jobs
        .filter(({ dataset }) => choices[dataset.id])
        .map(({ dataset }) => [dataset.id, value(choices[dataset.id])])
        .filter(([, value]) => value),
    );
  const ids = (choice) => own(choice).map((card) => card.dataset.id);
  const text = { name, batch, ...(reviewer && { reviewer }), browser, keep: ids("keep"), retake: ids("retake") };
  return JSON.stringify({ ...text, tasks: ofJobs(({ task }) => task), notes: ofJobs(({ note }) => note) }, null, 2);
}
// Dollars are added in millionths, so that no cent is lost.
function priceOf(retakes) {
  const micros = retakes.reduce((sum, card) => sum + Math.round(Number(card.dataset.price) * 1e6), 0);
  return `$${(micros / 1e6).toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 6 })}`;
}
function tellSaved() {
  const keep = own("keep").length;
  const retakes = own("retake");
  const noted = jobs.filter(({ dataset }) => choices[dataset.id]?.note).length;
  const withdrawn = jobs.filter(({ dataset }) => choices[dataset.id] && !choices[dataset.id].choice && !choices[dataset.id].note).length;
  const { number, text } = lastSaved();
  const isSaved = text === saveable();
  const file = fileOf(number);
  const bought = retakes.length ? `${retakes.length} ${retakes.length === 1 ? "retake" : "retakes"} for ${priceOf(retakes)}` : "";
  const parts = [keep && `${keep} keep`, bought, noted && `${noted} noted`, withdrawn && `${withdrawn} withdrawn`].filter(Boolean);
  $(".saving").hidden = !parts.length;
  $("#save").textContent = `${isSaved ? "Saved" : "Save"}: ${parts.join(", ")}`;
  $("#save").dataset.saved = isSaved;
  if (saved.hidden) return;
  $("span", saved).textContent = isSaved
    ? `Saved ${file} in this browser's download directory: ${parts.join(", ")}.`
    : `Changed since ${file} was saved.`;
  const next = $(".next", saved);
  if (!next) return;
  const named = (text) => text.replace(/choices(-\d+)?\.json/, file);
  const command = $(".command", next);
  next.hidden = !isSaved || !retakes.length;
  command.dataset.text = named(command.dataset.text);
  for (const word of $$("code span", command)) word.textContent = named(word.textContent);
}

function nextFile() {
  const number = lastSaved().number + 1;
  const text = saveable();
  keepLocally(kept + " saved", JSON.stringify({ number, text }));
  saved.hidden = false;
  tellChoices();
  return { file: fileOf(number), text };
}
function save() {
  const { file, text } = nextFile();
  const href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}
const asFile = ({ file, text }) => ({ files: [new File([text], file, { type: "application/json" })] });
function share() {
  navigator.share({ ...asFile(nextFile()), title: `Choices for ${name}` }).catch(() => {});
}
$("#share").hidden = !navigator.canShare?.(asFile({ file: "choices.json", text: "{}" }));

// The name is asked for once, at the first save.
const who = $("#who");
let afterName = save;
function withName(action) {
  afterName = action;
  if ($("#by").value.trim() || localValue("shotlist unnamed")) return action();
  who.returnValue = "cancel";
  who.showModal();
}
who.addEventListener("close", () => {
  if (who.returnValue !== "save") return;
  const reviewer = $("#reviewer").value.trim();
  setReviewer(reviewer);
  if (!reviewer) keepLocally("shotlist unnamed", "true");
  afterName();
});
function setReviewer(reviewer) {
  $("#by").value = reviewer;
  keepLocally("shotlist reviewer", reviewer);
  tellChoices();
}
$("#by").value = localValue("shotlist reviewer") ?? "";
$("#by").addEventListener("input", () => setReviewer($("#by").value));
$("#save").addEventListener("click", () => withName(save));
$("#share").addEventListener("click", () => withName(share));
