// On a telephone a picture is as wide as the page; touched, it is large and can be moved.
document.addEventListener("click", ({ target }) => {
  if (target.matches("div.cell_output img")) {
    target.closest("div.cell_output").classList.toggle("large");
  }
});
document.addEventListener("DOMContentLoaded", () => {
  // Names in code may break behind a dot or an underscore, not within a word.
  const names = ":is(table, .prev-next-area, .bd-sidebar-secondary) code .pre";
  for (const name of document.querySelectorAll(names)) {
    const parts = name.textContent.split(/(?<=[._=/])|(?=\()/);
    name.replaceChildren(...parts.flatMap((part) => [part, document.createElement("wbr")]));
  }
  // On a telephone, what a wide table says in many words is not squeezed.
  for (const cell of document.querySelectorAll("td:nth-child(n + 4)")) {
    cell.classList.toggle("long", cell.textContent.length > 60);
  }
});
