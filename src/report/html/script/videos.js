// Players: made when a card comes near, taken away when it is far.
function player(frame) {
  const video = document.createElement("video");
  Object.assign(video, { controls: true, loop: true, muted: true, playsInline: true, preload: "metadata" });
  const card = frame.closest(".card");
  // Known before the video is: nothing moves under a finger once it is.
  video.style.aspectRatio = `auto ${shapeOf(card)}`;
  const sources = [frame.dataset.file, frame.dataset.url].filter(Boolean);
  const tryNext = () => {
    const next = sources.shift();
    // A moment after the start, so that the first image is shown where there is none at zero.
    if (next) return (video.src = next + (next.includes("#") ? "" : "#t=0.01"));
    // What to do about it is said once, above all cards.
    $("#gone").hidden = false;
    video.replaceWith(Object.assign(document.createElement("p"), { className: "none gone", textContent: "not beside this page" }));
  };
  video.addEventListener("error", tryNext);
  tryNext();
  return video;
}
function isPlayable(card) {
  const frame = $(".frame", card);
  const { file, url } = frame.dataset;
  return !$(".none:not(.gone)", frame) && (Boolean(file || url) || card.dataset.state === "completed");
}

// What stays of a video that is far: its image, for the eye and for paper. Not of too many, for the sake of memory.
const MAX_STILLS = 300;
function still(video) {
  const { videoWidth: width, videoHeight: height } = video;
  if (!width || video.readyState < 2 || $$("canvas").length >= MAX_STILLS) return [];
  const canvas = document.createElement("canvas");
  const scale = Math.min(1, 480 / Math.max(width, height));
  Object.assign(canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
  canvas.getContext("2d").drawImage(video, 0, 0, canvas.width, canvas.height);
  return [canvas];
}

// An image without anything over it, until somebody wants to steer.
function fill(frame) {
  const video = player(frame);
  const play = Object.assign(document.createElement("button"), { className: "play", type: "button", textContent: "▶", tabIndex: -1 });
  play.setAttribute("aria-label", "Play");
  video.controls = false;
  video.addEventListener("play", () => (video.controls = true));
  frame.onpointerenter = () => {
    if (matchMedia("(hover: hover)").matches) video.controls = true;
  };
  frame.onpointerleave = () => {
    if (video.paused) video.controls = false;
  };
  play.addEventListener("click", () => video.play());
  video.addEventListener("error", () => {
    if (!video.isConnected) play.remove();
  });
  frame.replaceChildren(video, play);
}

// While a page is being printed, what is far stays.
let isPrinting = false;
function come(card) {
  const frame = $(".frame", card);
  if (!$("video", frame) && isPlayable(card)) fill(frame);
}
function go(card) {
  const frame = $(".frame", card);
  const video = $("video", frame);
  if (!video?.paused || isPrinting || video === document.fullscreenElement) return;
  const picture = still(video);
  video.removeAttribute("src");
  video.load();
  frame.replaceChildren(...picture);
}
const seen = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) (isIntersecting ? come : go)(target);
  },
  { rootMargin: "60% 0px" },
);

// On paper nobody scrolls: every image is there before the page is printed, or has had its time.
async function printAll() {
  isPrinting = true;
  const loads = shown()
    .filter(isPlayable)
    .map((card) => {
      const frame = $(".frame", card);
      if ($("canvas", frame)) return true;
      if (!$("video", frame)) fill(frame);
      const video = $("video", frame);
      return (
        video.readyState >= 2 ||
        new Promise((done) => {
          video.addEventListener("loadeddata", done);
          video.addEventListener("error", done);
        })
      );
    });
  await Promise.race([Promise.all(loads), new Promise((done) => setTimeout(done, 10000))]);
  print();
  isPrinting = false;
}
$("#print").addEventListener("click", printAll);
