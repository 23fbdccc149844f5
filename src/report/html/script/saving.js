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
// The choice about a job in the file that was saved last.
function savedChoice(id) {
  const { keep = [], retake = [] } = JSON.parse(lastSaved().text ?? "{}");
  return keep.includes(id) ? "keep" : retake.includes(id) ? "retake" : "";
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
  const { number, text, isShared } = lastSaved();
  const isSaved = text === saveable();
  const file = fileOf(number);
  const bought = retakes.length ? `${retakes.length} ${retakes.length === 1 ? "retake" : "retakes"} for ${priceOf(retakes)}` : "";
  const parts = [keep && `${keep} keep`, bought, noted && `${noted} noted`, withdrawn && `${withdrawn} withdrawn`].filter(Boolean);
  $(".saving").hidden = !parts.length;
  $("#save").textContent = `${isSaved ? "Saved" : "Save"}: ${parts.join(", ")}`;
  $("#save").dataset.saved = isSaved;
  if (saved.hidden) return;
  $("span", saved).textContent = isSaved
    ? `${isShared ? `Shared ${sharedAs(file)}` : `Saved ${file} in this browser's download directory`}.`
    : `Changed since ${file} was saved.`;
  $(".send", saved).hidden = !isSaved;
  const next = $(".next", saved);
  if (!next) return;
  const named = (text) => text.replace(/choices(-\d+)?\.json/, file);
  const command = $(".command", next);
  next.hidden = !isSaved || !retakes.length;
  command.dataset.text = named(command.dataset.text);
  for (const word of $$("code span", command)) word.textContent = named(word.textContent);
}

const nextFile = () => ({ number: lastSaved().number + 1, text: saveable() });
function keepSaved(file, isShared) {
  keepLocally(kept + " saved", JSON.stringify({ ...file, isShared, at: Date.now() }));
  saved.hidden = false;
  tellChoices();
}
function save() {
  const next = nextFile();
  const href = URL.createObjectURL(new Blob([next.text], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href, download: fileOf(next.number) }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
  keepSaved(next, false);
}
// Phones share no JSON by its name.
const sharedAs = (file) => file.replace(".json", ".txt");
const asFile = ({ number, text }) => ({ files: [new File([text], sharedAs(fileOf(number)), { type: "text/plain" })] });
async function share() {
  const next = nextFile();
  try {
    await navigator.share({ ...asFile(next), title: `Choices for ${name}` });
    keepSaved(next, true);
  } catch (error) {
    // A person who cancels wants no file. Otherwise, the choices must leave this page in another way.
    if (error.name !== "AbortError") save();
  }
}
$("#share").hidden = !navigator.canShare?.(asFile({ number: 1, text: "{}" }));

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
