// Rows. The style fills them; this gives each card its shape, and puts many cards into blocks.
//
// A browser looks at each card again in every frame in which somebody scrolls. So many cards stand in blocks of a few rows, of which a browser sees the
// near ones alone. A block ends where a row does: it looks as if there were none.
const MANY = 300;
const ROWS = 8;
const size = $("#size");
const items = [...sheet.children];

for (const card of cards) card.style.setProperty("--r", shapeOf(card).toFixed(4));
for (const group of groups) {
  const takes = $$(".card", group).filter(isJob);
  takes.forEach((card, number) => takes.length > 1 && ($(".frame", card).dataset.take = `take ${number + 1}/${takes.length}`));
  for (const card of $$(".earlier .frame", group)) card.dataset.take = "other take";
}

const near = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries)
      for (const card of $$(".card", target)) {
        if (isIntersecting) seen.observe(card);
        else {
          seen.unobserve(card);
          go(card);
        }
      }
  },
  { rootMargin: "120% 0px" },
);
if (cards.length < MANY) cards.forEach((card) => seen.observe(card));

function room() {
  const { columnGap, paddingLeft, paddingRight } = getComputedStyle(sheet);
  return { gap: parseFloat(columnGap) || 16, width: sheet.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) };
}
// The wanted height of a row: on a tablet, two videos that lie stand beside each other.
function height() {
  const { gap, width } = room();
  return width < 650 ? Number(size.value) : Math.min(Number(size.value), Math.floor(((width - gap) / 2) * (9 / 16)));
}
const cardsOf = (item) => (item.matches(".takes") ? $$(".card:not([hidden])", item) : item.hidden ? [] : [item]);

// The items of each block, by the rule of a flexible row: it breaks where the next card has no room at the wanted height. A block ends where a row ends
// with an item.
function blocksOf() {
  const { gap, width } = room();
  const tall = height();
  const blocks = [[]];
  let used = 0;
  let rows = 1;
  for (const item of items) {
    cardsOf(item).forEach((card, number) => {
      const wanted = Math.min(width, Math.round(tall * shapeOf(card).toFixed(4) * 1e4) / 1e4);
      if (used && used + gap + wanted > width + 0.01) {
        used = 0;
        rows += 1;
        if (rows > ROWS && number === 0) {
          blocks.push([]);
          rows = 1;
        }
      }
      used += (used ? gap : 0) + wanted;
    });
    blocks.at(-1).push(item);
  }
  return blocks;
}

let blocks = [];
function standInBlocks(sight) {
  // A video that is taken out, even for a moment, leaves the full screen.
  if (document.fullscreenElement) return;
  const wanted = blocksOf();
  if (wanted.length === blocks.length && wanted.every((block, number) => block.length === blocks[number].length)) return;
  const focus = document.activeElement;
  blocks = wanted;
  near.disconnect();
  seen.disconnect();
  sheet.classList.add("blocks");
  const old = $$(":scope > .block", sheet);
  for (const block of wanted) {
    const element = Object.assign(document.createElement("div"), { className: "block" });
    sheet.append(element);
    // Moved where a browser can do that, and not taken out for a moment: what plays plays on.
    for (const item of block) {
      if (element.moveBefore) element.moveBefore(item, null);
      else element.append(item);
    }
  }
  for (const block of old) block.remove();
  // A block that was never drawn is taken to be as tall as the first one.
  const first = sheet.firstElementChild;
  first.style.contentVisibility = "visible";
  sheet.style.setProperty("--tall", `${first.clientHeight - 16}px`);
  first.style.contentVisibility = "";
  for (const block of sheet.children) near.observe(block);
  if (focus !== document.activeElement) focus.focus({ preventScroll: true });
  if (sight?.card.checkVisibility()) scrollBy(0, sight.card.getBoundingClientRect().top - sight.top);
}
// A card that is read now: it stays where it is when blocks are made again.
function inSight() {
  const bar = $(".tools").getBoundingClientRect().bottom;
  const points = [10, 60, 110].flatMap((below) => [0.3, 0.4, 0.6].map((across) => [innerWidth * across, bar + below]));
  const card = scrollY ? points.map(([x, y]) => document.elementFromPoint(x, y)?.closest(".card")).find(Boolean) : null;
  return card ? { card, top: card.getBoundingClientRect().top } : null;
}

function place() {
  const sight = cards.length >= MANY ? inSight() : null;
  sheet.style.setProperty("--h", `${height()}px`);
  if (cards.length >= MANY) standInBlocks(sight);
}
function resize() {
  store.set("size", size.value);
  place();
}
size.value = store.get("size") ?? size.value;
size.addEventListener("input", resize);
addEventListener("resize", place);
document.addEventListener("fullscreenchange", place);
resize();
