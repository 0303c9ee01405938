// Figures as a person reads them: three digits and a unit.
const scaled = (x, step, units) => {
  let i = 0;
  while (Math.abs(x) >= step && i + 1 < units.length) x /= step, ++i;
  const digits = i === 0 && Number.isInteger(x) ? 0 : Math.abs(x) >= 100 ? 0 : Math.abs(x) >= 10 ? 1 : 2;
  return x.toFixed(digits) + "\u00a0" + units[i];
};
const bytes = (x) => scaled(x, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
const time = (us) => scaled(us, 1000, ["\u00b5s", "ms", "s"]);
const count = (x, unit = "") => scaled(x, 1000, ["", "k", "M", "G", "T", "P"].map((prefix) => prefix + unit));
const flopRate = (x) => scaled(x, 1000, ["", "k", "M", "G", "T", "P"].map((prefix) => prefix + "FLOP/s"));
const byteRate = (x) => scaled(x, 1000, ["", "k", "M", "G", "T"].map((prefix) => prefix + "B/s"));
const intensity = (x) => (x >= 100 ? grouped(Math.round(x)) : x.toPrecision(2));
const percent = (x) => (x > 0 && x < 0.0005 ? "< 0.1" : (100 * x).toFixed(Math.abs(x) < 0.0995 && x !== 0 ? 1 : 0)) + "%";
// A kernel or several, as many as a path launches.
const launches = (n) => (n === 1 ? "1 kernel" : `${n} kernels`);
const brief = (text) => text.replace(/\.0+(?=\D)/, "");  // of a round figure on an axis
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const grouped = d3.format(",");
const plural = (n, what) => `${grouped(n)} ${what}${n === 1 ? "" : "s"}`;
const tokens = (n) => (n >= 1024 && n % 1024 === 0 ? `${n / 1024}K` : grouped(n));  // 8K is 8192

const colors = {
  fused: "#0072b2", unfused: "#d55e00", read: "#0072b2", write: "#e69f00", good: "#009e73", bad: "#c1272d",
  soft: "#57606a", line: "#d0d7de", ink: "#1b1f24",
};
