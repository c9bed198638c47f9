/// Counts of what became of values and pages, while a scrub goes on.
struct ScrubTally {
  /// For each tree and field, how many values had each outcome.
  var fields: [[ScrubReport.Counts]] = []

  /// Pages by what became of them.
  var pages = ScrubReport.Pages()

  /// What was not understood.
  var gaps: [ScrubReport.Gap] = []

  /// How many there are in all, and their bytes.
  var gapCount = 0
  var gapBytes: Int64 = 0

  /// Values that were found in what stays by a rule, and in structure or numbers by chance.
  var keptMatches: Int64 = 0
  var chanceMatches: Int64 = 0

  static let gapLimit = 10_000

  mutating func gap(_ file: String, _ offset: Int64, _ length: Int) {
    gapCount += 1
    gapBytes += Int64(length)
    if gaps.count < Self.gapLimit { gaps.append(ScrubReport.Gap(file: file, offset: offset, length: length)) }
  }

  mutating func count(_ outcome: Pseudonyms.Outcome, _ tree: Int?, _ field: Int) {
    guard let tree, tree < fields.count, field < fields[tree].count else {
      if let last = fields.indices.last, !fields[last].isEmpty { fields[last][0].add(outcome) }
      return
    }
    fields[tree][field].add(outcome)
  }
}
