"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  // Until now, the page had no buttons.
  document.body.classList.remove("static");
  const cards = $$(".card");
  // Of the cards, those that are jobs; an earlier video of a job has one, too, to be looked at.
  const isJob = (card) => !card.dataset.of;
  const jobs = cards.filter(isJob);
  const store = {
    get(name) { try { return JSON.parse(sessionStorage.getItem(location.pathname + name)); } catch { return null; } },
    set(name, value) { try { sessionStorage.setItem(location.pathname + name, JSON.stringify(value)); } catch { /* a browser that keeps nothing shows everything all the same */ } },
  };

  // Players: made when a card is seen, taken away when it is far.
  function player(frame) {
    const video = document.createElement("video");
    Object.assign(video, { controls: true, loop: true, muted: true, playsInline: true, preload: "metadata" });
    // Known before the video is: nothing moves under a finger once it is.
    video.style.aspectRatio = frame.closest(".upright") ? "auto 9 / 16" : "auto 16 / 9";
    const sources = [frame.dataset.file, frame.dataset.url].filter(Boolean);
    const tryNext = () => {
      const next = sources.shift();
      // A moment after the start, so that the first image is shown where there is none at zero.
      if (next) video.src = next + (next.includes("#") ? "" : "#t=0.01");
      else video.replaceWith(Object.assign(document.createElement("p"), { className: "none gone", textContent: "The video is not beside this page, and there is no good link to it. The next run fetches it." }));
    };
    video.addEventListener("error", tryNext);
    // A image that lies beside the video is quicker to have.
    if (frame.dataset.poster) Object.assign(video, { poster: frame.dataset.poster, preload: "none" });
    tryNext();
    return video;
  }
  // What stays of a video that is far: its image, for the eye and for paper. Not of too many, for the sake of memory.
  const MOST_STILLS = 300;
  function still(video) {
    const { videoWidth: width, videoHeight: height } = video;
    if (!width || video.readyState < 2 || $$("canvas").length >= MOST_STILLS) return [];
    const canvas = document.createElement("canvas"), scale = Math.min(1, 480 / Math.max(width, height));
    Object.assign(canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    canvas.getContext("2d").drawImage(video, 0, 0, canvas.width, canvas.height);
    return [canvas];
  }
  // A image without anything over it, until somebody wants to steer.
  function fill(frame) {
    const video = player(frame), play = Object.assign(document.createElement("button"), { className: "play", type: "button", textContent: "▶", tabIndex: -1 });
    play.setAttribute("aria-label", "Play");
    video.controls = false;
    video.addEventListener("play", () => { video.controls = true; });
    frame.onpointerenter = () => { if (matchMedia("(hover: hover)").matches) video.controls = true; };
    frame.onpointerleave = () => { if (video.paused) video.controls = false; };
    play.addEventListener("click", () => video.play());
    video.addEventListener("error", () => { if (!video.isConnected) play.remove(); });
    frame.replaceChildren(video, play);
  }
  const playable = (card) => { const frame = $(".frame", card), { file, url } = frame.dataset; return !$(".none:not(.gone)", frame) && (Boolean(file || url) || card.dataset.state === "completed"); };
  // While a page is being printed, what is far is there, too.
  let printing = false;
  function come(card) { const frame = $(".frame", card); if (!$("video", frame) && playable(card)) fill(frame); }
  function go(card) {
    const frame = $(".frame", card), video = $("video", frame);
    if (video?.paused && !printing && video !== document.fullscreenElement) { const picture = still(video); video.removeAttribute("src"); video.load(); frame.replaceChildren(...picture); }
  }
  const seen = new IntersectionObserver((entries) => { for (const { target, isIntersecting } of entries) (isIntersecting ? come : go)(target); }, { rootMargin: "60% 0px" });

  // A browser looks at each card again in every frame in which somebody scrolls, and places all of a grid again where one of its cards has
  // another height than was thought. So many cards stand in blocks of a few rows, of which a browser sees the near ones alone. A block
  // ends where a row does: it looks as if there were none.
  const MANY = 300, ROWS = 8;
  const sheet = $("#sheet"), items = [...sheet.children];
  const near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) for (const card of $$(".card", target)) {
      if (isIntersecting) seen.observe(card);
      else { seen.unobserve(card); go(card); }
    }
  }, { rootMargin: "120% 0px" });
  let blocks = [];
  function blocksOf(room, span) {
    const all = [[]];
    let used = 0, rows = 1;
    for (const item of items) {
      const wide = item.hidden ? 0 : span(item);
      if (used + wide > room) {
        used = 0;
        rows += 1;
        if (rows > ROWS) { all.push([]); rows = 1; }
      }
      used += wide;
      all.at(-1).push(item);
    }
    return all;
  }
  function standInBlocks(room, span, sight) {
    // A video that is taken out, even for a moment, leaves the full screen.
    if (document.fullscreenElement) return;
    const all = blocksOf(room, span);
    if (all.length === blocks.length && all.every((block, number) => block.length === blocks[number].length)) return;
    const focus = document.activeElement;
    blocks = all;
    near.disconnect();
    seen.disconnect();
    sheet.classList.add("blocks");
    const old = $$(":scope > .block", sheet);
    for (const block of all) {
      const element = Object.assign(document.createElement("div"), { className: "block" });
      sheet.append(element);
      // Moved where a browser can do that, and not taken out for a moment: what plays plays on.
      for (const item of block) { if (element.moveBefore) element.moveBefore(item, null); else element.append(item); }
    }
    for (const block of old) block.remove();
    // A block that was never drawn is taken to be as tall as the first one.
    const first = sheet.firstElementChild;
    first.style.contentVisibility = "visible";
    sheet.style.setProperty("--tall", `${first.clientHeight - 8}px`);
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
  if (cards.length < MANY) cards.forEach((card) => seen.observe(card));

  const size = $("#size");

  // Filter.
  const everything = { text: "", states: [], model: "", tag: "", decision: "" };
  const filter = Object.assign({}, everything, store.get("filter"));
  const words = new Map();
  // Without accents, and with the letters that have none: whoever looks for lodz finds Łódź.
  const plain = (text) => text.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "").replace(/[łøđß]/g, (letter) => ({ ł: "l", ø: "o", đ: "d", ß: "ss" })[letter]);
  const textOf = (card) => { if (!words.has(card)) words.set(card, plain(card.textContent)); return words.get(card); };
  const shown = () => cards.filter((card) => !card.hidden);
  const takes = $$(".takes");
  function apply() {
    const wanted = plain(filter.text).split(/\s+/).filter(Boolean);
    for (const card of jobs) {
      const { notes, state, model, tags } = card.dataset;
      card.hidden = !((!filter.states.length || filter.states.includes(state) || notes.split(" ").some((note) => filter.states.includes(note))) && (!filter.model || filter.model === model)
        && (!filter.tag || tags.split("\n").includes(filter.tag)) && (!filter.decision || filter.decision === decision(card)) && wanted.every((word) => textOf(card).includes(word)));
    }
    for (const group of takes) {
      const none = $$(".card", group).filter(isJob).every((card) => card.hidden);
      group.hidden = none;
      for (const card of $$(".earlier", group)) card.hidden = none;
    }
    const count = jobs.filter((card) => !card.hidden).length;
    $("#count").textContent = count === jobs.length ? `${count} jobs` : `${count} of ${jobs.length} jobs`;
    $("#nothing").hidden = count > 0;
    for (const chip of $$(".chip")) chip.setAttribute("aria-pressed", filter.states.includes(chip.dataset.state));
    for (const line of $$("[data-show]")) line.setAttribute("aria-pressed", filter.states.includes(line.dataset.show));
    for (const name of ["text", "model", "tag", "decision"]) { const field = $("#" + name); if (field && field.value !== filter[name]) field.value = filter[name]; }
    store.set("filter", filter);
    place();
  }
  const set = (change) => { Object.assign(filter, change); apply(); };
  $("#text").addEventListener("input", (event) => set({ text: event.target.value }));
  for (const name of ["model", "tag", "decision"]) $("#" + name)?.addEventListener("change", (event) => set({ [name]: event.target.value }));
  for (const chip of $$(".chip")) chip.addEventListener("click", () => {
    const { state } = chip.dataset;
    set({ states: filter.states.includes(state) ? filter.states.filter((other) => other !== state) : [...filter.states, state] });
  });
  $("#clear").addEventListener("click", () => set(everything));
  // As many columns as there is room for; pairs of them unless every video stands. Takes of one job stand in a row of their own, or
  // beside others where there is room for all of them.
  function place() {
    const sight = cards.length >= MANY ? inSight() : null;
    const { columnGap, paddingLeft, paddingRight } = getComputedStyle(sheet), gap = parseFloat(columnGap);
    const width = sheet.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    const fits = Math.max(2, Math.floor((width + gap) / (Number(size.value) + gap)));
    const room = shown().every((card) => card.matches(".upright")) ? fits : fits - (fits % 2);
    sheet.style.setProperty("--columns", `repeat(${room}, minmax(0, 1fr))`);
    const columns = (card) => (card.matches(".upright") ? 1 : 2);
    const wantedBy = (group) => $$(".card", group).reduce((sum, card) => sum + columns(card), 0);
    for (const group of takes) {
      const wanted = wantedBy(group);
      group.style.gridColumn = wanted <= room ? `span ${wanted}` : "1 / -1";
      // All of them in one row, whatever their number.
      group.style.gridTemplateColumns = `repeat(${wanted}, minmax(7rem, 1fr))`;
    }
    if (cards.length >= MANY) standInBlocks(room, (item) => (item.matches(".takes") ? Math.min(wantedBy(item), room) : columns(item)), sight);
  }
  const resize = () => { store.set("size", size.value); place(); };
  size.value = store.get("size") ?? size.value;
  size.addEventListener("input", resize);
  addEventListener("resize", place);
  document.addEventListener("fullscreenchange", place);
  resize();
  for (const button of $$("[data-show]")) button.addEventListener("click", () => set({ ...everything, states: filter.states.includes(button.dataset.show) ? [] : [button.dataset.show] }));

  // Selection.
  const picked = () => cards.filter((card) => $(".pick", card).checked);
  function tellPicked() {
    const ids = picked().map((card) => card.dataset.id), some = picked().some(isJob);
    for (const button of $$("#picked [data-copy]")) button.hidden = !some;
    for (const button of $$("#picked [data-do]")) button.hidden = !picked().some((card) => $("[data-choose]", card));
    $("#picked").hidden = !ids.length;
    $("#how-many").textContent = `${ids.length} picked`;
    $("#compare").hidden = picked().filter(playable).length < 2;
    $("#copied").hidden = true;
    store.set("picked", ids);
  }
  const pick = (card, on = !$(".pick", card).checked) => { $(".pick", card).checked = on; tellPicked(); };
  document.addEventListener("change", (event) => { if (event.target.classList.contains("pick")) tellPicked(); });
  for (const button of $$("[data-copy]")) button.addEventListener("click", async () => {
    const option = button.dataset.copy;
    const text = picked().filter(isJob).map((card) => (option ? `${option} ${card.dataset.id}` : card.dataset.id)).join(" ");
    const field = $("#copied");
    Object.assign(field, { hidden: false, value: text });
    // Where a browser gives a page from the disk no clipboard, the old way; and the field shows what to copy by hand.
    try { await navigator.clipboard.writeText(text); } catch { field.select(); document.execCommand("copy"); button.focus(); }
    tellCopied(button);
  });
  function tellCopied(label) {
    const text = label.textContent;
    label.textContent = "Copied";
    setTimeout(() => { label.textContent = text; }, 1200);
  }
  for (const button of $$(".command")) button.addEventListener("click", async () => {
    const { text } = button.dataset;
    try { await navigator.clipboard.writeText(text); } catch {
      const field = Object.assign(document.createElement("textarea"), { value: text });
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
      button.focus();
    }
    tellCopied($(":scope > span", button));
  });
  $("#drop").addEventListener("click", () => { for (const card of picked()) $(".pick", card).checked = false; tellPicked(); });

  // Choices: keep, retake or nothing, and a note. They stay in this browser, under the name of the batch, until somebody saves
  // them. A choice is about the video that was looked at: once the card shows that of another task, only its note is left.
  const { name, batch = "" } = document.body.dataset, kept = `shotlist choices ${JSON.stringify([name, batch])}`;
  const choices = (() => { try { return JSON.parse(localStorage.getItem(kept)) ?? {}; } catch { return {}; } })();
  const jobOf = (card) => card.dataset.of ?? card.dataset.id;
  // The cards of the takes of a job: its own, and those of its other videos.
  const takesOf = new Map();
  for (const card of cards) takesOf.set(jobOf(card), [...(takesOf.get(jobOf(card)) ?? []), card]);
  // One choice for each job, about one of its takes. Until there is one, what the ledger has counts.
  const chosen = (card) => {
    const made = choices[jobOf(card)], recorded = { choice: card.dataset.recorded ?? "" };
    if (!made) return recorded;
    const about = takesOf.get(jobOf(card)).find(({ dataset }) => dataset.task === made.task);
    // Its video was retaken or is gone: the choice is spent, and the note stays.
    if (!about || (made.choice === "retake" && !isJob(about))) return isJob(card) ? { ...recorded, note: made.note } : recorded;
    if (about === card) return made;
    return made.choice ? {} : recorded;
  };
  const isDecidable = (card) => Boolean($("[data-choose]", card));
  const decisionOf = (card) => takesOf.get(card.dataset.id).map((take) => chosen(take).choice).find(Boolean) ?? "";
  const decision = (card) => (isDecidable(card) ? decisionOf(card) || "none" : "");
  // Of this reviewer alone, so that no reviewer signs for another.
  const withChoice = (choice) => jobs.filter((card) => choices[card.dataset.id] && decisionOf(card) === choice).map((card) => card.dataset.id);
  // The same buttons and note again, in the large view or under a video that is compared.
  const owners = new WeakMap();
  const ownerOf = (element) => owners.get(element.closest(".choice, figure")) ?? element.closest(".card");
  function choiceAgain(card) {
    if (!isDecidable(card)) return [];
    const copy = $(".choice", card).cloneNode(true);
    owners.set(copy, card);
    return [copy];
  }
  function tellChoice(bar, { choice = "", note = "" }) {
    for (const button of $$("[data-choose=keep], [data-choose=retake]", bar)) button.setAttribute("aria-pressed", button.dataset.choose === choice);
    const field = $(".note", bar);
    if (field.value !== note) field.value = note;
    field.hidden = field.hidden && !note;
    $("[data-choose=note]", bar).setAttribute("aria-expanded", !field.hidden);
  }
  const kinds = { keep: "keep", retake: "retake", conflict: "conflict", none: "undecided" };
  const ofJobs = (value) => Object.fromEntries(jobs.map(({ dataset }) => [dataset.id, choices[dataset.id] && value(choices[dataset.id])]).filter(([, value]) => value));
  function saveable() {
    const reviewer = $("#by").value.trim();
    return JSON.stringify({ name, batch, ...(reviewer && { reviewer }), keep: withChoice("keep"), retake: withChoice("retake"), tasks: ofJobs(({ task }) => task), notes: ofJobs(({ note }) => note) }, null, 2);
  }
  function tellChoices() {
    for (const card of cards) {
      card.dataset.choice = chosen(card).choice ?? "";
      if (isDecidable(card)) tellChoice($(".choice", card), chosen(card));
    }
    for (const bar of $$("dialog .choice")) tellChoice(bar, chosen(ownerOf(bar)));
    const keep = withChoice("keep").length, retake = withChoice("retake").length, notes = Object.keys(ofJobs(({ note }) => note)).length;
    const { number, text } = lastSaved(), isSaved = text === saveable(), file = fileOf(number);
    $("#save").hidden = !(keep + retake + notes);
    $("#save").textContent = `${isSaved ? "Saved" : "Save choices"}: ${keep} keep, ${retake} retake`;
    const saved = $("#saved");
    if (!saved.hidden) $("span", saved).textContent = isSaved ? `Saved ${file} with ${keep} keep, ${retake} retake, ${notes} noted, in this browser's download directory.` : `Changed since ${file} was saved.`;
    const next = $(".next", saved), named = (text) => text.replace(/choices(-\d+)?\.json/, file);
    if (next) {
      next.hidden = !isSaved || !retake;
      const command = $(".command", next);
      command.dataset.text = named(command.dataset.text);
      for (const word of $$("code span", command)) word.textContent = named(word.textContent);
    }
    for (const option of $$("#decision option[value]")) if (option.value) option.textContent = `${kinds[option.value]} (${jobs.filter((card) => decision(card) === option.value).length})`;
    $("#decision").hidden = !jobs.some(isDecidable);
    keepLocally(kept, JSON.stringify(choices));
  }
  // A browser that keeps nothing has the choices as long as the page is open.
  function localValue(key) { try { return localStorage.getItem(key); } catch { return null; } }
  function keepLocally(key, value) { try { localStorage.setItem(key, value); } catch { /* the page still has it */ } }
  // Each save has a file of its own. Under one name, a browser would call the second `choices (1).json`, and the command would buy what the
  // first one asked for.
  const lastSaved = () => { try { return JSON.parse(localValue(kept + " saved")) ?? { number: 0 }; } catch { return { number: 0 }; } };
  const fileOf = (number) => (number > 1 ? `choices-${number}.json` : "choices.json");
  function choose(card, change) {
    const id = jobOf(card), { task, recorded } = card.dataset;
    choices[id] = { ...chosen(card), task, ...change };
    if (!choices[id].choice && !choices[id].note && !recorded) delete choices[id];
    tellChoices();
  }
  for (const button of $$("#picked [data-do]")) button.addEventListener("click", () => {
    for (const card of picked()) if ($(`[data-choose=${button.dataset.do}]`, card)) choose(card, { choice: button.dataset.do });
  });
  const toggle = (card, choice) => isDecidable(card) && $(`[data-choose=${choice}]`, card) && choose(card, { choice: chosen(card).choice === choice ? "" : choice });
  function openNote(root) { const field = $(".note", root); if (field) { field.hidden = false; tellChoices(); field.focus(); } }
  function leaveNote(field) {
    field.hidden = !field.value;
    tellChoices();
    const root = field.closest("figure, .card");
    if (root) root.focus(); else $("[data-choose=note]", field.parentElement).focus();
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-choose]");
    if (!button) return;
    if (button.dataset.choose === "note") openNote(button.parentElement); else toggle(ownerOf(button), button.dataset.choose);
  });
  document.addEventListener("input", (event) => { if (event.target.classList.contains("note")) choose(ownerOf(event.target), { note: event.target.value }); });
  $("#by").value = localValue("shotlist reviewer") ?? "";
  $("#by").addEventListener("input", () => { keepLocally("shotlist reviewer", $("#by").value); tellChoices(); });
  $("#save").addEventListener("click", () => {
    const text = saveable(), number = lastSaved().number + 1;
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: fileOf(number) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    keepLocally(kept + " saved", JSON.stringify({ number, text }));
    $("#saved").hidden = false;
    tellChoices();
  });

  // Large view and comparison.
  const viewer = $("#viewer"), wall = $("#wall"), help = $("#help");
  let viewed = null;
  function view(card) {
    viewed = card;
    const stage = $(".stage", viewer), frame = $(".frame", card);
    stage.replaceChildren(playable(card) ? Object.assign(player(frame), { autoplay: true }) : $(".none, img", frame)?.cloneNode(true) ?? "");
    $("h2 bdi", viewer).textContent = card.dataset.id;
    $(".prompt", viewer).textContent = $(".prompt", card)?.textContent ?? "";
    $(".about .facts", viewer).replaceChildren(...$$(".facts li, .tags li, .more li", card).map((fact) => fact.cloneNode(true)));
    $(".decide", viewer).replaceChildren(...choiceAgain(card));
    if (!viewer.open) viewer.showModal();
    tellChoices();
    tellViewed();
  }
  function tellViewed() { $("[data-do=pick]", viewer).setAttribute("aria-pressed", $(".pick", viewed).checked); }
  function step(by) {
    const all = shown(), at = all.indexOf(viewed);
    const next = all[at + by];
    if (next) view(next);
  }
  function compare() {
    const both = picked().filter(playable);
    if (both.length < 2) return;
    $(".stage", wall).replaceChildren(...both.map((card) => {
      const figure = document.createElement("figure");
      const caption = Object.assign(document.createElement("figcaption"), { textContent: card.dataset.id });
      const facts = $(".facts", card).cloneNode(true), prompt = $(".prompt", card)?.cloneNode(true) ?? "";
      figure.tabIndex = -1;
      owners.set(figure, card);
      figure.append(Object.assign(player($(".frame", card)), { autoplay: true }), caption, facts, prompt, ...choiceAgain(card));
      return figure;
    }));
    wall.showModal();
    tellChoices();
    $("figure", wall).focus();
  }
  function moveCompared(by) {
    const all = $$("figure", wall), at = all.indexOf(document.activeElement?.closest("figure"));
    all[Math.max(0, Math.min(all.length - 1, at + by))].focus();
  }
  $("#compare").addEventListener("click", compare);
  $("#keys").addEventListener("click", () => help.showModal());
  for (const dialog of [viewer, wall, help]) {
    dialog.addEventListener("close", () => { const stage = $(".stage", dialog); stage?.replaceChildren(); if (dialog === viewer) viewed?.focus(); });
    dialog.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (event.target === dialog || button?.dataset.do === "close") dialog.close();
      if (button?.dataset.go) step(Number(button.dataset.go));
      if (button?.dataset.do === "pick") { pick(viewed); tellViewed(); }
      if (button?.dataset.do === "restart") for (const video of $$("video", wall)) { video.currentTime = 0; video.play(); }
    });
  }
  sheet.addEventListener("click", (event) => { if (event.target.closest(".open, .prompt")) view(event.target.closest(".card")); });
  // A thumb that sweeps over the large view goes from video to video.
  let touched = null;
  viewer.addEventListener("touchstart", (event) => { touched = event.changedTouches[0]; }, { passive: true });
  viewer.addEventListener("touchend", (event) => {
    const { clientX, clientY } = event.changedTouches[0], x = clientX - touched.clientX, y = clientY - touched.clientY;
    if (Math.abs(x) > 60 && Math.abs(x) > 2 * Math.abs(y)) step(x < 0 ? 1 : -1);
  }, { passive: true });

  // Keys.
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
    // The takes of one job are one row, however many they are.
    const row = Math.max(getComputedStyle(sheet).getPropertyValue("--columns").match(/\d+/)[0], ...takes.map((group) => $$(".card", group).length));
    const all = shown(), at = all.indexOf(from), most = 2 * row;
    const around = all.slice(Math.max(0, at - most), at + most + 1), drawn = new Set(around.map((card) => card.closest(".block")).filter(Boolean));
    for (const block of drawn) block.style.contentVisibility = "visible";
    const { left, top } = from.getBoundingClientRect();
    const others = around.map((card) => ({ card, box: card.getBoundingClientRect() })).filter(({ box }) => (box.top - top) * by > 8);
    const distance = Math.min(...others.map(({ box }) => (box.top - top) * by));
    const next = others.filter(({ box }) => (box.top - top) * by < distance + 60).sort((a, b) => Math.abs(a.box.left - left) - Math.abs(b.box.left - left));
    next[0]?.card.focus({ preventScroll: true });
    next[0]?.card.scrollIntoView({ block: "nearest" });
    for (const block of drawn) block.style.contentVisibility = "";
  }
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "p") { event.preventDefault(); printAll(); return; }
    if (event.target.matches(".note") && (event.key === "Escape" || (event.key === "Enter" && (event.ctrlKey || event.metaKey)))) { event.preventDefault(); leaveNote(event.target); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input:not(.pick), select, textarea");
    if (event.key === "Escape" && event.target.id === "text") { set({ text: "" }); event.target.blur(); return; }
    if (typing) return;
    const figure = wall.open ? document.activeElement?.closest("figure") : null;
    const card = viewer.open ? viewed : figure ? owners.get(figure) : document.activeElement?.closest?.(".card");
    const onControl = event.target.matches("button, a, video, summary, .pick");
    const acts = {
      ArrowRight: () => (viewer.open ? step : wall.open ? moveCompared : move)(1), ArrowLeft: () => (viewer.open ? step : wall.open ? moveCompared : move)(-1),
      ArrowDown: () => moveRow(1), ArrowUp: () => moveRow(-1), j: () => move(1), k: () => move(-1),
      1: () => card && toggle(card, "keep"), 2: () => card && toggle(card, "retake"), n: () => card && openNote(viewer.open ? viewer : figure ?? card),
      "/": () => $("#text").focus(), "?": () => help.showModal(), c: compare, x: () => card && (pick(card), viewer.open && tellViewed()),
      a: () => { for (const one of shown()) $(".pick", one).checked = true; tellPicked(); },
      Enter: () => !onControl && card && view(card),
      " ": () => { if (onControl) return false; const video = $("video", viewer.open ? viewer : figure ?? card ?? viewer); if (video) { if (video.paused) video.play(); else video.pause(); } },
    };
    // In the large view the arrows go from video to video; in a card they go through the video that has the focus.
    const isCompared = ["ArrowRight", "ArrowLeft", "1", "2", "n", " "].includes(event.key);
    if (help.open || (wall.open && !isCompared) || !(event.key in acts) || (!viewer.open && event.target.matches("video") && event.key.startsWith("Arrow"))) return;
    if (onControl && (event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    acts[event.key]();
  });

  // Live: the page is read again while nothing plays, and what was set stays set.
  const live = $("#live");
  let timer = null;
  function keepLive(on) {
    live.setAttribute("aria-pressed", on);
    store.set("live", on);
    clearInterval(timer);
    if (on) timer = setInterval(() => { if (!$("dialog[open]") && $$("video").every((video) => video.paused)) { store.set("scroll", scrollY); location.reload(); } }, 15000);
  }
  live.addEventListener("click", () => keepLive(live.getAttribute("aria-pressed") !== "true"));
  if (store.get("live")) { keepLive(true); scrollTo(0, store.get("scroll") ?? 0); }

  // On paper nobody scrolls: every image is there before the page is printed, or has had its time.
  async function printAll() {
    printing = true;
    const loads = shown().filter(playable).map((card) => {
      const frame = $(".frame", card);
      if ($("canvas", frame)) return true;
      if (!$("video", frame)) fill(frame);
      const video = $("video", frame);
      if (video.poster) { video.preload = "metadata"; video.load(); }
      return video.readyState >= 2 || new Promise((done) => { video.addEventListener("loadeddata", done); video.addEventListener("error", done); });
    });
    await Promise.race([Promise.all(loads), new Promise((done) => setTimeout(done, 10000))]);
    print();
    printing = false;
  }
  $("#print").addEventListener("click", printAll);

  // Times as they are here; what is written in the page is UTC.
  for (const time of $$("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const isToday = at.toDateString() === new Date().toDateString();
    time.title = at.toISOString().replace("T", " ").slice(0, 19) + " UTC";
    time.textContent = at.toLocaleString(undefined, isToday ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" });
  }
  const menu = $(".menu");
  document.addEventListener("click", (event) => { if (!menu.contains(event.target) || event.target.closest("button")) menu.open = false; });

  const before = new Set(store.get("picked") ?? []);
  for (const card of cards) $(".pick", card).checked = before.has(card.dataset.id);
  tellPicked();
  tellChoices();
  apply();
})();
