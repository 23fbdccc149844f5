// What all parts share: the cards, what a browser keeps, and names of jobs.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
// Until now, the page had no buttons.
document.body.classList.remove("static");
for (const button of $$("button[disabled]")) button.disabled = false;

const sheet = $("#sheet");
const cards = $$(".card");
const groups = $$(".takes");
// An earlier video of a job has a card, too.
const isJob = (card) => !card.dataset.of;
const jobs = cards.filter(isJob);
const jobOf = (card) => card.dataset.of ?? card.dataset.id;
const shown = () => cards.filter((card) => !card.hidden);

// Of this page, until its tab is closed. A browser that keeps nothing shows everything all the same.
const store = {
  get(name) {
    try {
      return JSON.parse(sessionStorage.getItem(location.pathname + name));
    } catch {
      return null;
    }
  },
  set(name, value) {
    try {
      sessionStorage.setItem(location.pathname + name, JSON.stringify(value));
    } catch {
      // The page still has it.
    }
  },
};
// Of this browser, for good.
function localValue(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
function keepLocally(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // The page still has it.
  }
}

// The shape of a picture, width over height: as it was delivered, or else as it was ordered; of words in its place, that of a video that lies.
function shapeOf(card) {
  if ($(".frame > .none:not(.gone)", card)) return 16 / 9;
  const [wide, high] = card.dataset.shape.split(/[:x]/).map(Number);
  return wide > 0 && high > 0 ? Math.min(4, Math.max(0.4, wide / high)) : card.matches(".upright") ? 9 / 16 : 16 / 9;
}

// Where a browser gives a page from the disk no clipboard, the old way.
async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    button.focus();
  }
}
function tellCopied(label) {
  const text = label.textContent;
  label.textContent = "Copied";
  setTimeout(() => (label.textContent = text), 1200);
}
for (const button of $$(".command"))
  button.addEventListener("click", async () => {
    await copy(button.dataset.text, button);
    tellCopied($(":scope > span", button));
  });
