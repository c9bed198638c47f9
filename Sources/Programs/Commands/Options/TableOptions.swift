import ArgumentParser

/// How much of a table is shown.
struct TableOptions: ParsableArguments {
  @Flag(help: "Show the rows of entities and tables without records too.")
  var all = false

  func validate() {
    guard all else { return }
    TextStyle.change { $0.showsZeros = true }
  }
}
