/// What the comparison of indexes with the rows of their tables found.
public struct IndexReport: Sendable {
  /// What is wrong: entries that are not those of the rows, or not in order.
  public var findings = Findings()

  /// How many indexes were compared with the rows of their tables.
  public var compared = 0

  /// The indexes whose entries cannot be computed here: of expressions, with a condition, of tables WITHOUT ROWID, and those
  /// whose definition cannot be read.
  public var uncompared: [String] = []

  /// Whether nothing is wrong.
  public var isSound: Bool { !findings.hasDamage }

  /// Adds what was found of further indexes.
  package mutating func add(_ other: IndexReport) {
    findings.append(contentsOf: other.findings)
    compared += other.compared
    uncompared += other.uncompared
  }
}
