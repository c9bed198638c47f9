/// The counts of a running scrub.
struct ScrubTally {
  var fields: [[ScrubReport.Counts]] = []

  var pages = ScrubReport.Pages()

  var gaps: [ScrubReport.Gap] = []

  var gapCount = 0
  var gapBytes: Int64 = 0

  var keptMatches: Int64 = 0

  static let gapLimit = 10_000

  mutating func gap(_ file: String, _ offset: Int64, _ length: Int) {
    gapCount += 1
    gapBytes += Int64(length)
    if gaps.count < Self.gapLimit { gaps.append(ScrubReport.Gap(file: file, offset: offset, length: length)) }
  }

  mutating func add(_ other: ScrubTally) {
    for (tree, counts) in other.fields.enumerated() where tree < fields.count {
      for (field, count) in counts.enumerated() where field < fields[tree].count { fields[tree][field].add(count) }
    }
    pages.add(other.pages)
    gaps += other.gaps.prefix(max(0, Self.gapLimit - gaps.count))
    gapCount += other.gapCount
    gapBytes += other.gapBytes
    keptMatches += other.keptMatches
  }

  mutating func count(_ outcome: Pseudonyms.Outcome, _ tree: Int?, _ field: Int) {
    guard let tree, tree < fields.count, field < fields[tree].count else {
      if let last = fields.indices.last, !fields[last].isEmpty { fields[last][0].add(outcome) }
      return
    }
    fields[tree][field].add(outcome)
  }
}
