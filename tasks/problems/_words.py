"""Names and objects that the generators share, few and short so that a small model can learn."""

NAMES = (
    "Ann", "Ben", "Cora", "Dan", "Emma", "Finn", "Gina", "Hugo", "Ida", "Jack", "Kim", "Leo",
    "Mia", "Ned", "Olga", "Paul", "Rosa", "Sam", "Tina", "Uma", "Vera", "Will", "Yara", "Zoe",
)  # fmt: skip
OBJECTS = (
    "apples", "books", "cards", "coins", "cups", "dolls", "eggs", "hats", "kites", "lamps",
    "marbles", "muffins", "nuts", "pears", "pens", "plates", "plums", "ribbons", "roses", "shells",
    "socks", "spoons", "stamps", "toys",
)  # fmt: skip
