import Platform

/// The counts of a salvage and their wording in every output.
public struct RecoveryCount: Sendable, Hashable {
  /// Records in the salvaged store.
  public private(set) var recovered: Int64 = 0

  /// Recovered records that may have a wrong value.
  public private(set) var doubtful: Int64 = 0

  /// The doubtful records by reason, each once.
  public private(set) var doubtReasons: [DoubtReason: Int64] = [:]

  /// Intact records left out of the salvaged store.
  public private(set) var setAside: Int64 = 0

  /// Records not found.
  public private(set) var lost: Int64 = 0

  /// The pairs of many-to-many relationships.
  public package(set) var pairs = PairCount()

  /// Rows that fit no table.
  public package(set) var unplaced: Int64 = 0

  /// Recovered records' values without a column, set aside.
  public package(set) var valuesSetAside: Int64 = 0

  package var recordsLeftOut: Int64 = 0

  package var valuesLeftOut: Int64 = 0

  /// The evidence for the lost count.
  public private(set) var lostBases: Set<SalvageReport.Entity.Basis> = []

  /// Whether the lost count is estimated or unknown.
  public private(set) var isEstimate = false

  /// Whether more may be lost: no page of a table is left.
  public private(set) var hasUnknown = false

  private var isOfKnownTable = false

  private var isRough = false

  /// Whether everything, with references and files, was recovered beyond doubt.
  public var isComplete: Bool

  /// Creates an empty count.
  public init(isComplete: Bool) { self.isComplete = isComplete }

  /// Adds an account.
  ///
  /// - Parameters:
  ///   - setAside: intact records left out.
  ///   - isExact: whether `lost` is exact.
  ///   - basis: the evidence, if noted.
  public mutating func add(
    recovered: Int64, doubtful: Int64, reasons: [DoubtReason: Int64], setAside: Int64 = 0, lost: Int64, isExact: Bool,
    basis: SalvageReport.Entity.Basis?
  ) {
    self.setAside = self.setAside.addingClamped(max(0, setAside))
    self.recovered = self.recovered.addingClamped(max(0, recovered))
    self.doubtful = self.doubtful.addingClamped(max(0, doubtful))
    for (reason, count) in reasons where count > 0 {
      doubtReasons[reason] = (doubtReasons[reason] ?? 0).addingClamped(count)
    }
    if basis == .unknown { (hasUnknown, isEstimate, isOfKnownTable) = (true, true, true) }
    guard lost > 0 else { return }
    self.lost = self.lost.addingClamped(lost)
    if !isExact, basis != .unknown { (isRough, isEstimate) = (true, true) }
    if let basis, basis != .none { lostBases.insert(basis) }
  }

  package mutating func noteUnknownTables() { (hasUnknown, isEstimate) = (true, true) }

  private var isWithoutSome: Bool {
    unplaced > 0 || valuesSetAside > 0 || recordsLeftOut > 0 || valuesLeftOut > 0 || pairs.lost > 0
      || pairs.setAside > 0
  }

  /// Recovered, set-aside and lost records together.
  public var total: Int64 { recovered.addingClamped(setAside).addingClamped(lost) }

  /// All known records, and the rows that fit no table.
  private var all: Int64 { total.addingClamped(unplaced) }

  /// The recovered percentage of all known records and unplaced rows, rounded down; at most 99 if values or pairs are
  /// missing, nil if unknown.
  public var percent: Int? {
    guard !hasUnknown, total > 0 || isComplete else { return nil }
    return mostPercent == 100 && pairs.hasUnknown ? nil : mostPercent
  }

  private var mostPercent: Int {
    guard total > 0 else { return 100 }
    let share = Int(all.dividingFullWidth(recovered.multipliedFullWidth(by: 100)).quotient)
    return isWithoutSome ? min(99, share) : share
  }
}

extension RecoveryCount {
  init(_ entities: [SalvageReport.Entity], isComplete: Bool) {
    self.init(isComplete: isComplete)
    for entity in entities {
      add(
        recovered: entity.recovered, doubtful: entity.doubtful, reasons: entity.doubts, setAside: entity.setAside,
        lost: entity.lost, isExact: entity.isLostExact, basis: entity.lostBasis)
    }
  }
}

extension RecoveryCount {
  /// - Parameter number: nil if unknown.
  package mutating func leaveOut(_ number: Int64?, isValues: Bool) {
    let number = max(0, number ?? 0)
    if isValues {
      valuesLeftOut = valuesLeftOut.addingClamped(number)
    } else {
      recordsLeftOut = recordsLeftOut.addingClamped(number)
    }
  }
}

// MARK: In words

extension RecoveryCount {
  /// The headline and details in plain sentences.
  public var words: String { ([headline + "."] + detailWords).joined(separator: " ") }

  /// Returns the reservations in words; nil if lost or doubtful records explain them.
  package func words(reserving reasons: [String]) -> String? {
    guard lost == 0, !hasUnknown, doubtful == 0, !reasons.isEmpty else { return nil }
    return "Not beyond doubt: \(reasons.joined(separator: "; "))."
  }

  package var detailWords: [String] {
    [lossWords, setAsideWords, pairs.words, valueWords, leftOutWords, total > 0 ? unplacedWords : nil]
      .compactMap(\.self)
  }

  package var unplacedWords: String? {
    guard unplaced > 0 else { return nil }
    return unplaced == 1
      ? "One row besides fits no table that is known." : "\(grouped(unplaced)) rows besides fit no table that is known."
  }

  /// A sentence on set-aside records.
  public var setAsideWords: String? {
    guard setAside > 0 else { return nil }
    return counted(setAside, "record was", "records were") + " set aside."
  }

  /// `Recovered 49,432 of 54,769 records (90 %), 40,439 of them doubtful because …`, without a period.
  public var headline: String {
    if isComplete {
      switch recovered {
      case 0: return "It held no records"
      case 1: return "The one record that it held was recovered"
      default: return "All \(grouped(recovered)) records were recovered"
      }
    }
    guard total > 0 else {
      guard unplaced > 0 else { return "No records were recovered" }
      return "No records were recovered in tables of their own, and \(counted(unplaced, "row fits", "rows fit")) "
        + "no table that is known"
    }
    // The following sentences name the missing rest.
    let line =
      isWithoutSome && recovered == total && !hasUnknown
      ? "Recovered \(counted(recovered, "record"))"
      : "Recovered \(grouped(recovered)) of \(roughly)\(counted(all, "record")) (\(percentWords))"
    return [line, doubtWords].compactMap(\.self).joined(separator: ", ")
  }

  /// `40,439 of them doubtful because …`; nil without any.
  public var doubtWords: String? {
    guard doubtful > 0 else { return nil }
    let reasons = reasonsByCount.filter { $0 != .notNoted }.map(\.words)
    guard !reasons.isEmpty else { return "\(grouped(doubtful)) of them doubtful" }
    return "\(grouped(doubtful)) of them doubtful because \(reasons.joined(separator: ", or because "))"
  }

  /// The reasons by descending count.
  public var reasonsByCount: [DoubtReason] {
    DoubtReason.allCases.filter { (doubtReasons[$0] ?? 0) > 0 }
      .ordered { (doubtReasons[$0] ?? 0, $1.rawValue) > (doubtReasons[$1] ?? 0, $0.rawValue) }
  }

  /// A sentence on lost records and the evidence.
  public var lossWords: String? {
    guard lost > 0 else { return hasUnknown ? unknownWords : nil }
    var text = "\(isRough ? "About " : "")\(counted(lost, "record is", "records are")) lost"
    if let basis = basisWords { text += ", \(basis)" }
    return text + "." + (hasUnknown ? " " + unknownWords : "")
  }

  /// A sentence on set-aside values.
  public var valueWords: String? {
    guard valuesSetAside > 0 else { return nil }
    return counted(valuesSetAside, "value that has no column was", "values that have no column were") + " set aside."
  }

  var leftOutWords: String? {
    var parts: [String] = []
    if recordsLeftOut > 0 { parts.append(counted(recordsLeftOut, "record")) }
    if valuesLeftOut > 0 { parts.append(counted(valuesLeftOut, "value")) }
    guard !parts.isEmpty else { return nil }
    return "The migration to the app's version left out \(parts.joined(separator: " and ")) of what was recovered."
  }

  private var unknownWords: String {
    (isOfKnownTable
      ? "Nothing tells how many records a table held" : "There may have been tables that nothing tells of")
      + ": an unknown number \(lost > 0 ? "more " : "")may be lost."
  }

  /// `90 %`, `about 90 %`, `at most 90 %`, `unknown`, or `not all` if values or pairs are missing.
  public var share: String { isRough ? "about \(mostWords)" : isShareUnknown ? "unknown" : percentWords }

  /// `3`, `about 3`, `at least 3` or `unknown`.
  public var lostNumber: String { hasUnknown && lost == 0 ? "unknown" : roughly + grouped(lost) }

  /// The prefix of an inexact number.
  public var roughly: String { isRough ? "about " : hasUnknown ? "at least " : "" }

  /// Whether only an unknown loss keeps the share below 100 %, or no record is known.
  private var isShareUnknown: Bool { percent == nil && (mostPercent == 100 || total == 0) }

  private var percentWords: String {
    if isShareUnknown { return "share unknown" }
    if isWithoutSome, recovered == total, total > 0 { return "not all" }
    return hasUnknown && !isRough ? "at most \(mostWords)" : mostWords
  }

  /// Keeps a decimal near 100 %: `99.9 %` of 17,661 of 17,662.
  private var mostWords: String {
    guard mostPercent == 99, recovered < total else { return "\(mostPercent) %" }
    let tenth = all.dividingFullWidth(recovered.multipliedFullWidth(by: 1000)).quotient % 10
    return tenth == 0 ? "99 %" : "99.\(tenth) %"
  }

  private var basisWords: String? {
    if isRough { return "estimated by the pages that are gone and by what lay beside them" }
    let names = SalvageReport.Entity.Basis.allCases.filter(lostBases.contains).compactMap { basis -> String? in
      switch basis {
      case .kit: "a recovery kit"
      case .index: "an index"
      case .cells: "what is left of them"
      case .unknown: "what refers to them"
      case .none, .estimate: nil
      }
    }
    return names.isEmpty ? nil : "counted by \(names.joined(separator: " and "))"
  }
}

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
      sentences.append("\(number) of \(roughly)\(counted(total, "pair")) \(what) \(lost == 1 ? "is" : "are") lost.")
    } else if hasUnknown {
      sentences.append("An unknown number of pairs \(what) may be lost.")
    }
    if setAside > 0 {
      let gap = "\(what) of which a record is not there"
      sentences.append(counted(setAside, "pair \(gap) was", "pairs \(gap) were") + " set aside.")
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
