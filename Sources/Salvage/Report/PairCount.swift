import Platform

/// What a salvage recovered of the pairs of many-to-many relationships, which no record has, and what of them is lost.
public struct PairCount: Sendable, Hashable {
  /// Pairs that are in the salvaged store.
  public private(set) var recovered: Int64 = 0

  /// Pairs that were found and are not in the salvaged store, because a record of theirs is not.
  public private(set) var setAside: Int64 = 0

  /// Pairs that were there and were not found.
  public private(set) var lost: Int64 = 0

  private var isRough = false

  /// Whether more are lost, or may be, and nothing tells how many.
  public private(set) var hasUnknown = false

  /// A count of nothing.
  public init() {}

  /// Adds the account of a relationship.
  ///
  /// - Parameters:
  ///   - isExact: whether the number of lost pairs is; else it is an estimate, or where it is 0 not known.
  ///   - isUnknown: whether nothing tells how many are lost.
  public mutating func add(recovered: Int64, setAside: Int64, lost: Int64, isExact: Bool, isUnknown: Bool) {
    self.recovered = self.recovered.addingClamped(max(0, recovered))
    self.setAside = self.setAside.addingClamped(max(0, setAside))
    self.lost = self.lost.addingClamped(max(0, lost))
    if isUnknown { hasUnknown = true } else if !isExact, lost > 0 { isRough = true }
  }

  /// Pairs that the store held, as far as that is known.
  public var total: Int64 { recovered.addingClamped(setAside).addingClamped(lost) }

  /// Pairs that are not in the salvaged store, as far as that is known.
  public var missing: Int64 { setAside.addingClamped(lost) }

  /// Whether the number of lost pairs is exact; else it is an estimate, or not known.
  public var isLostExact: Bool { !isRough && !hasUnknown }

  /// Whether none is lost or set aside, and none may be.
  public var isWhole: Bool { lost == 0 && setAside == 0 && !hasUnknown }

  /// The count where there is anything to count; else nil.
  package var known: Self? { total > 0 || hasUnknown ? self : nil }

  /// What is lost and what was set aside, in sentences; nil where all are there.
  public var words: String? {
    let what = "of many-to-many relationships"
    var sentences: [String] = []
    if lost > 0 {
      let roughly = isRough ? "about " : hasUnknown ? "at least " : ""
      let number = roughly.prefix(1).uppercased() + roughly.dropFirst() + grouped(lost)
      sentences.append(
        "\(number) of \(roughly)\(counted(total, "pair")) \(what) \(lost == 1 ? "is" : "are") lost.")
    } else if hasUnknown {
      sentences.append("An unknown number of pairs \(what) may be lost.")
    }
    if setAside > 0 {
      sentences.append(
        "\(counted(setAside, "pair")) \(what) of which a record is not there \(setAside == 1 ? "was" : "were") set aside."
      )
    }
    return sentences.isEmpty ? nil : sentences.joined(separator: " ")
  }
}

extension PairCount {
  /// The sum of the accounts of a report.
  init(_ accounts: [SalvageReport.Entity]) {
    for account in accounts {
      add(
        recovered: account.recovered, setAside: account.setAside, lost: account.lost, isExact: account.isLostExact,
        isUnknown: account.lostBasis == .unknown)
    }
  }
}

extension PairCount: Encodable {
  /// Writes the numbers for programs.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "recovered": recovered, "setAside": setAside, "lost": lost, "lostIsExact": isLostExact, "total": total,
    ])
  }
}
