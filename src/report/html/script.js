"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const cards = $$(".card");
  const store = {
    get(name) { try { return JSON.parse(sessionStorage.getItem(location.pathname + name)); } catch { return null; } },
    set(name, value) { try { sessionStorage.setItem(location.pathname + name, JSON.stringify(value)); } catch { /* a browser that keeps nothing shows everything all the same */ } },
  };

  // Players: made when a card is seen, taken away when it is far.
  function player(frame) {
    const video = document.createElement("video");
    Object.assign(video, { controls: true, loop: true, muted: true, playsInline: true, preload: "metadata" });
    const sources = [frame.dataset.file, frame.dataset.url].filter(Boolean);
    const tryNext = () => {
      const next = sources.shift();
      // A moment after the start, so that the first picture is shown where there is none at zero.
      if (next) video.src = next + (next.includes("#") ? "" : "#t=0.01");
      else video.replaceWith(Object.assign(document.createElement("p"), { className: "none", textContent: "The video is not beside this page, and its link is no longer good. The next run fetches it." }));
    };
    video.addEventListener("error", tryNext);
    tryNext();
    return video;
  }
  // A picture without anything over it, until somebody wants to steer.
  function fill(frame) {
    const video = player(frame), play = Object.assign(document.createElement("button"), { className: "play", type: "button", textContent: "▶", tabIndex: -1 });
    play.setAttribute("aria-label", "Play");
    video.controls = false;
    video.addEventListener("play", () => { video.controls = true; });
    frame.addEventListener("pointerenter", () => { if (matchMedia("(hover: hover)").matches) video.controls = true; });
    frame.addEventListener("pointerleave", () => { if (video.paused) video.controls = false; });
    play.addEventListener("click", () => video.play());
    video.addEventListener("error", () => { if (!video.isConnected) play.remove(); });
    frame.replaceChildren(video, play);
  }
  const playable = (card) => { const { file, url } = $(".frame", card).dataset; return Boolean(file || url) && card.dataset.state === "completed"; };
  // While a page is being printed, what is far is there, too.
  let printing = false;
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const frame = $(".frame", target), video = $("video", frame);
      if (isIntersecting && !video && playable(target)) fill(frame);
      else if (!isIntersecting && video?.paused && !printing) { video.removeAttribute("src"); video.load(); frame.replaceChildren(); }
    }
  }, { rootMargin: "60% 0px" });
  cards.forEach((card) => seen.observe(card));

  // Filter.
  const filter = Object.assign({ text: "", states: [], model: "", tag: "" }, store.get("filter"));
  const words = new Map();
  // Without accents, and with the letters that have none: whoever looks for lodz finds Łódź.
  const plain = (text) => text.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "").replace(/[łøđß]/g, (letter) => ({ ł: "l", ø: "o", đ: "d", ß: "ss" })[letter]);
  const textOf = (card) => { if (!words.has(card)) words.set(card, plain(card.textContent)); return words.get(card); };
  const shown = () => cards.filter((card) => !card.hidden);
  function apply() {
    const wanted = plain(filter.text).split(/\s+/).filter(Boolean);
    for (const card of cards) {
      const { state, model, tags } = card.dataset;
      card.hidden = !((!filter.states.length || filter.states.includes(state)) && (!filter.model || filter.model === model)
        && (!filter.tag || tags.split("\n").includes(filter.tag)) && wanted.every((word) => textOf(card).includes(word)));
    }
    const count = shown().length;
    $("#count").textContent = count === cards.length ? `${count} jobs` : `${count} of ${cards.length} jobs`;
    $("#nothing").hidden = count > 0;
    for (const chip of $$(".chip")) chip.setAttribute("aria-pressed", filter.states.includes(chip.dataset.state));
    for (const name of ["text", "model", "tag"]) { const field = $("#" + name); if (field && field.value !== filter[name]) field.value = filter[name]; }
    store.set("filter", filter);
  }
  const set = (change) => { Object.assign(filter, change); apply(); };
  $("#text").addEventListener("input", (event) => set({ text: event.target.value }));
  for (const name of ["model", "tag"]) $("#" + name)?.addEventListener("change", (event) => set({ [name]: event.target.value }));
  for (const chip of $$(".chip")) chip.addEventListener("click", () => {
    const { state } = chip.dataset;
    set({ states: filter.states.includes(state) ? filter.states.filter((other) => other !== state) : [...filter.states, state] });
  });
  $("#clear").addEventListener("click", () => set({ text: "", states: [], model: "", tag: "" }));
  const size = $("#size");
  const resize = () => { document.documentElement.style.setProperty("--card-width", size.value + "px"); store.set("size", size.value); };
  size.value = store.get("size") ?? size.value;
  size.addEventListener("input", resize);
  resize();

  // Selection.
  const picked = () => cards.filter((card) => $(".pick", card).checked);
  function tellPicked() {
    const ids = picked().map((card) => card.dataset.id);
    $("#picked").hidden = !ids.length;
    $("#how-many").textContent = `${ids.length} picked`;
    $("#compare").hidden = ids.length < 2;
    $("#copied").hidden = true;
    store.set("picked", ids);
  }
  const pick = (card, on = !$(".pick", card).checked) => { $(".pick", card).checked = on; tellPicked(); };
  document.addEventListener("change", (event) => { if (event.target.classList.contains("pick")) tellPicked(); });
  for (const button of $$("[data-copy]")) button.addEventListener("click", async () => {
    const option = button.dataset.copy;
    const text = picked().map((card) => (option ? `${option} ${card.dataset.id}` : card.dataset.id)).join(" ");
    const field = $("#copied");
    Object.assign(field, { hidden: false, value: text });
    // Where a browser gives a page from the disk no clipboard, the old way; and the field shows what to copy by hand.
    try { await navigator.clipboard.writeText(text); } catch { field.select(); document.execCommand("copy"); button.focus(); }
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1200);
  });
  $("#drop").addEventListener("click", () => { for (const card of picked()) $(".pick", card).checked = false; tellPicked(); });

  // Choices: keep, again or nothing, and a note. They stay in this browser, under the name of the batch, until somebody saves them.
  const { name, batch = "" } = document.body.dataset, kept = `shotlist choices ${JSON.stringify([name, batch])}`;
  const choices = (() => { try { return JSON.parse(localStorage.getItem(kept)) ?? {}; } catch { return {}; } })();
  const chosen = (card) => choices[card.dataset.id] ?? {};
  const withChoice = (choice) => cards.filter((card) => chosen(card).choice === choice).map((card) => card.dataset.id);
  function tellChoices() {
    for (const card of cards) {
      const { choice = "", note = "" } = chosen(card), field = $(".note", card);
      card.dataset.choice = choice;
      for (const button of $$("[data-choose=keep], [data-choose=again]", card)) button.setAttribute("aria-pressed", button.dataset.choose === choice);
      if (field) { if (field.value !== note) field.value = note; field.hidden = field.hidden && !note; $("[data-choose=note]", card).setAttribute("aria-expanded", !field.hidden); }
    }
    const keep = withChoice("keep").length, again = withChoice("again").length, notes = cards.filter((card) => chosen(card).note).length;
    $("#save").hidden = !(keep + again + notes);
    $("#save").textContent = `Save choices: ${keep} keep, ${again} again`;
    try { localStorage.setItem(kept, JSON.stringify(choices)); } catch { /* then they last as long as the page */ }
  }
  function choose(card, change) {
    const id = card.dataset.id;
    choices[id] = { ...choices[id], ...change };
    if (!choices[id].choice && !choices[id].note) delete choices[id];
    tellChoices();
  }
  const toggle = (card, choice) => $("[data-choose]", card) && choose(card, { choice: chosen(card).choice === choice ? "" : choice });
  function openNote(card) { const field = $(".note", card); if (field) { field.hidden = false; tellChoices(); field.focus(); } }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-choose]"), card = button?.closest(".card");
    if (card) { if (button.dataset.choose === "note") openNote(card); else toggle(card, button.dataset.choose); }
  });
  document.addEventListener("input", (event) => { if (event.target.classList.contains("note")) choose(event.target.closest(".card"), { note: event.target.value }); });
  $("#save").addEventListener("click", () => {
    const notes = Object.fromEntries(cards.filter((card) => chosen(card).note).map((card) => [card.dataset.id, chosen(card).note]));
    const text = JSON.stringify({ name, batch, keep: withChoice("keep"), again: withChoice("again"), notes }, null, 2);
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: "choices.json" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  // Large view and comparison.
  const viewer = $("#viewer"), wall = $("#wall"), help = $("#help");
  let viewed = null;
  function view(card) {
    viewed = card;
    const stage = $(".stage", viewer), frame = $(".frame", card);
    stage.replaceChildren(playable(card) ? Object.assign(player(frame), { autoplay: true }) : Object.assign(document.createElement("p"), { textContent: $(".none", frame)?.textContent ?? "" }));
    $("h2 bdi", viewer).textContent = card.dataset.id;
    $(".prompt", viewer).textContent = $(".prompt", card)?.textContent ?? "";
    $(".told .facts", viewer).textContent = $$(".facts li", card).map((fact) => fact.textContent).join(" · ");
    if (!viewer.open) viewer.showModal();
    $("[data-do=pick]", viewer).setAttribute("aria-pressed", $(".pick", card).checked);
  }
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
      figure.append(Object.assign(player($(".frame", card)), { autoplay: true }), caption);
      return figure;
    }));
    wall.showModal();
  }
  $("#compare").addEventListener("click", compare);
  $("#keys").addEventListener("click", () => help.showModal());
  for (const dialog of [viewer, wall, help]) {
    dialog.addEventListener("close", () => { const stage = $(".stage", dialog); stage?.replaceChildren(); if (dialog === viewer) viewed?.focus(); });
    dialog.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (event.target === dialog || button?.dataset.do === "close") dialog.close();
      if (button?.dataset.go) step(Number(button.dataset.go));
      if (button?.dataset.do === "pick") { pick(viewed); button.setAttribute("aria-pressed", $(".pick", viewed).checked); }
      if (button?.dataset.do === "again") for (const video of $$("video", wall)) { video.currentTime = 0; video.play(); }
    });
  }
  document.addEventListener("dblclick", (event) => { const card = event.target.closest(".card"); if (card && !event.target.closest("a, label, video")) view(card); });

  // Keys.
  function move(by) {
    const all = shown();
    if (!all.length) return;
    const at = all.indexOf(document.activeElement?.closest?.(".card"));
    const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))];
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }
  const columns = () => getComputedStyle($("#sheet")).gridTemplateColumns.split(" ").length;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input:not(.pick), select, textarea");
    if (event.key === "Escape" && event.target.id === "text") { set({ text: "" }); event.target.blur(); return; }
    if (typing) return;
    const card = viewer.open ? viewed : document.activeElement?.closest?.(".card");
    const onControl = event.target.matches("button, a, video, .pick");
    const acts = {
      ArrowRight: () => (viewer.open ? step(1) : move(1)), ArrowLeft: () => (viewer.open ? step(-1) : move(-1)),
      ArrowDown: () => move(columns()), ArrowUp: () => move(-columns()), j: () => move(1), k: () => move(-1),
      1: () => card && toggle(card, "keep"), 2: () => card && toggle(card, "again"), n: () => card && !viewer.open && openNote(card),
      "/": () => $("#text").focus(), "?": () => help.showModal(), c: compare, x: () => card && pick(card),
      a: () => { for (const one of shown()) $(".pick", one).checked = true; tellPicked(); },
      Enter: () => !onControl && card && view(card),
      " ": () => { if (onControl) return false; const video = $("video", viewer.open ? viewer : card ?? viewer); if (video) { if (video.paused) video.play(); else video.pause(); } },
    };
    // In the large view the arrows go from video to video; in a card they go through the video that has the focus.
    if ((wall.open || help.open) || !(event.key in acts) || (!viewer.open && event.target.matches("video") && event.key.startsWith("Arrow"))) return;
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

  // On paper nobody scrolls: every picture is there before the page is printed, or has had its time.
  $("#print").addEventListener("click", async () => {
    printing = true;
    const loads = shown().filter(playable).map((card) => {
      const frame = $(".frame", card);
      if (!$("video", frame)) fill(frame);
      const video = $("video", frame);
      return video.readyState >= 2 || new Promise((done) => { video.addEventListener("loadeddata", done); video.addEventListener("error", done); });
    });
    await Promise.race([Promise.all(loads), new Promise((done) => setTimeout(done, 10000))]);
    print();
    printing = false;
  });

  const before = new Set(store.get("picked") ?? []);
  for (const card of cards) $(".pick", card).checked = before.has(card.dataset.id);
  tellPicked();
  tellChoices();
  apply();
})();
