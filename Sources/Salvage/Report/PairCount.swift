import Platform

/// The recovered and lost pairs of many-to-many relationships, which are not records.
public struct PairCount: Sendable, Hashable {
  /// Pairs in the salvaged store.
  public private(set) var recovered: Int64 = 0

  /// Found pairs left out for a missing record.
  public private(set) var setAside: Int64 = 0

  /// Pairs not found.
  public private(set) var lost: Int64 = 0

  private var isRough = false

  /// Whether more may be lost.
  public private(set) var hasUnknown = false

  /// Creates an empty count.
  public init() {}

  /// Adds an account.
  ///
  /// - Parameters:
  ///   - isExact: false for an estimate, or an unknown 0.
  ///   - isUnknown: whether more may be lost.
  public mutating func add(recovered: Int64, setAside: Int64, lost: Int64, isExact: Bool, isUnknown: Bool) {
    self.recovered = self.recovered.addingClamped(max(0, recovered))
    self.setAside = self.setAside.addingClamped(max(0, setAside))
    self.lost = self.lost.addingClamped(max(0, lost))
    if isUnknown { hasUnknown = true } else if !isExact, lost > 0 { isRough = true }
  }

  /// Known pairs of the original store.
  public var total: Int64 { recovered.addingClamped(setAside).addingClamped(lost) }

  /// Known pairs outside the salvaged store.
  public var missing: Int64 { setAside.addingClamped(lost) }

  /// Whether the lost count is exact.
  public var isLostExact: Bool { !isRough && !hasUnknown }

  /// Whether no pair is, or may be, missing.
  public var isWhole: Bool { lost == 0 && setAside == 0 && !hasUnknown }

  package var known: Self? { total > 0 || hasUnknown ? self : nil }

  /// Sentences on lost and set-aside pairs; nil if complete.
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
  init(_ accounts: [SalvageReport.Entity]) {
    for account in accounts {
      add(
        recovered: account.recovered, setAside: account.setAside, lost: account.lost, isExact: account.isLostExact,
        isUnknown: account.lostBasis == .unknown)
    }
  }
}

extension PairCount: Encodable {
  /// Writes the JSON keys.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "recovered": recovered, "setAside": setAside, "lost": lost, "lostIsExact": isLostExact, "total": total,
    ])
  }
}
