// Rows, as photo sites have them: of all ways to break the cards into full rows, the one whose heights are nearest to the wanted one. Without scripts,
// the style fills rows as they come. Many cards stand in blocks.
//
// A browser looks at each card again in every frame in which somebody scrolls. So many cards stand in blocks of a few rows, of which a browser sees the
// near ones alone. A block ends where a row does: it looks as if there were none.
const MANY = 300;
const ROWS = 8;
// A card has room for its buttons and words, and a row is not blown up to be full.
const MIN_WIDTH = 124;
const MIN_SHRINK = 0.85;
const MAX_STRETCH = 1.6;
const PHONE = 650;
const TABLET = 900;
const size = $("#size");
const items = [...sheet.children];

const shapes = new Map(cards.map((card) => [card, shapeOf(card)]));
for (const [card, shape] of shapes) card.style.setProperty("--r", shape.toFixed(4));
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
  return width < PHONE ? Number(size.value) : Math.min(Number(size.value), Math.floor(((width - gap) / 2) * (9 / 16)));
}
const cardsOf = (item) => (item.matches(".takes") ? $$(".card:not([hidden])", item) : item.hidden ? [] : [item]);

// The cards of each row, each with its height.
function rowsOf() {
  const { gap, width } = room();
  const tall = height();
  const all = items.flatMap(cardsOf);
  // On a small screen, one video may have the whole width.
  const most = width < TABLET ? Infinity : tall * MAX_STRETCH;
  const best = [{ cost: 0 }];
  for (let end = 1; end <= all.length; end += 1) {
    best.push({ cost: Infinity });
    let [sum, narrow] = [0, Infinity];
    for (let start = end - 1; start >= 0; start -= 1) {
      const shape = shapes.get(all[start]);
      [sum, narrow] = [sum + shape, Math.min(narrow, shape)];
      const full = (width - gap * (end - start - 1)) / sum;
      if (start < end - 1 && (full * narrow < MIN_WIDTH || full < tall * MIN_SHRINK)) break;
      const isShort = end === all.length && full > tall && width >= PHONE;
      const cost = best[start].cost + (isShort ? 0 : Math.log(full / tall) ** 2);
      if (cost < best[end].cost) best[end] = { cost, start, high: isShort ? tall : Math.min(full, most) };
    }
  }
  const rows = [];
  for (let end = all.length; end > 0; end = best[end].start) rows.push({ cards: all.slice(best[end].start, end), high: best[end].high });
  return rows.reverse();
}
function justify(rows) {
  for (const { cards, high } of rows)
    for (const card of cards) {
      // Rounded down, so that the last card of a row stays in it.
      const width = `${Math.floor(high * shapes.get(card) * 100) / 100}px`;
      if (card.style.width !== width) Object.assign(card.style, { flex: "none", maxWidth: "none", width });
    }
}
// The items of each block. It ends where a row ends with an item.
function blocksOf(rows) {
  const firsts = new Map(rows.map(({ cards }, row) => [cards[0], row]));
  const blocks = [[]];
  let start = 0;
  for (const item of items) {
    const row = firsts.get(cardsOf(item)[0]);
    if (row - start >= ROWS) {
      blocks.push([]);
      start = row;
    }
    blocks.at(-1).push(item);
  }
  return blocks;
}

let blocks = [];
function standInBlocks(rows, sight) {
  // A video that is taken out, even for a moment, leaves the full screen.
  if (document.fullscreenElement) return;
  const wanted = blocksOf(rows);
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
  const rows = rowsOf();
  sheet.style.setProperty("--h", `${height()}px`);
  justify(rows);
  if (cards.length >= MANY) standInBlocks(rows, sight);
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
