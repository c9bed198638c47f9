import Platform

/// What a salvage recovered, what of that is doubtful, and what is lost: the numbers, and the words for them, of every
/// text, list, notice, page and JSON document.
public struct RecoveryCount: Sendable, Hashable {
  /// Records that are in the salvaged store.
  public private(set) var recovered: Int64 = 0

  /// Those of them of which a value may be wrong.
  public private(set) var doubtful: Int64 = 0

  /// Why, with how many are doubtful for each reason; a record is counted once.
  public private(set) var doubtReasons: [DoubtReason: Int64] = [:]

  /// Records that were found whole and that the salvaged store does not take; they are kept beside it.
  public private(set) var setAside: Int64 = 0

  /// Records that were there and were not found.
  public private(set) var lost: Int64 = 0

  /// The pairs of many-to-many relationships, which are no records.
  public package(set) var pairs = PairCount()

  /// Rows that were found and fit no table, which are none of the above.
  public package(set) var unplaced: Int64 = 0

  /// Values of recovered records that were set aside, because the salvaged store has no column for them.
  public package(set) var valuesSetAside: Int64 = 0

  /// Recovered records that a migration left out: the app's version has no place for them, or a filter of its mapping.
  package var recordsLeftOut: Int64 = 0

  /// Values of recovered records that a migration left out, because the app's version has no place for them.
  package var valuesLeftOut: Int64 = 0

  /// What the number of lost records stands on; empty where none is lost, or a salvage did not note it.
  public private(set) var lostBases: Set<SalvageReport.Entity.Basis> = []

  /// Whether the number of lost records, and so the total, is an estimate, or is not known at all.
  public private(set) var isEstimate = false

  /// Whether more are lost, or may be, and nothing tells how many: no page of their table is left.
  public private(set) var hasUnknown = false

  /// Whether that is so of a table that is known; else there may have been others.
  private var isOfKnownTable = false

  /// Whether the number of those that are known to be lost is an estimate.
  private var isRough = false

  /// Whether everything that the store held was recovered, beyond doubt; references and files counted too.
  public var isComplete: Bool

  /// A count of nothing.
  public init(isComplete: Bool) { self.isComplete = isComplete }

  /// Adds the account of an entity.
  ///
  /// - Parameters:
  ///   - setAside: the records that were found whole and are not in the salvaged store.
  ///   - isExact: whether the number of lost records is; else it is an estimate.
  ///   - basis: what it stands on; nil where that was not noted.
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

  /// Notes that there may have been tables that nothing tells of, with any number of records.
  package mutating func noteUnknownTables() { (hasUnknown, isEstimate) = (true, true) }

  /// Whether something of recovered records, or of what was between them, is not in the salvaged store.
  private var isWithoutSome: Bool {
    unplaced > 0 || valuesSetAside > 0 || recordsLeftOut > 0 || valuesLeftOut > 0 || pairs.lost > 0
      || pairs.setAside > 0
  }

  /// Records that the store held: those that were recovered, those that were set aside and those that are lost.
  public var total: Int64 { recovered.addingClamped(setAside).addingClamped(lost) }

  /// The share of them that was recovered in percent, rounded down, and 99 at most where values of theirs, or pairs of
  /// them, are not in the salvaged store, or rows were found that fit no table; nil where nothing tells how many there were.
  public var percent: Int? {
    guard !hasUnknown, total > 0 || isComplete else { return nil }
    return mostPercent == 100 && pairs.hasUnknown ? nil : mostPercent
  }

  /// The most that this share can be: nothing more may have been there than is known.
  private var mostPercent: Int {
    guard total > 0 else { return 100 }
    let share = Int(total.dividingFullWidth(recovered.multipliedFullWidth(by: 100)).quotient)
    return isWithoutSome ? min(99, share) : share
  }
}

extension RecoveryCount {
  /// The account of a single entity, and the sum of a report's.
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
  /// Counts what a migration left out.
  ///
  /// - Parameters:
  ///   - number: how many records or values; nil where that is not known.
  ///   - isValues: whether values of records were, and not records.
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
  /// What came out, in a few plain sentences: the headline, what is lost, and what was set aside or left out of the
  /// records.
  public var words: String { ([headline + "."] + detailWords).joined(separator: " ") }

  /// `Not beyond doubt: 12 rows were set aside.`, of the reasons why a result is not complete; nil where there is none, or where
  /// lost or doubtful records tell why.
  package func words(reserving reasons: [String]) -> String? {
    guard lost == 0, !hasUnknown, doubtful == 0, !reasons.isEmpty else { return nil }
    return "Not beyond doubt: \(reasons.joined(separator: "; "))."
  }

  /// What is lost, what was set aside, and what was left out of the records, a sentence each.
  package var detailWords: [String] {
    [lossWords, setAsideWords, pairs.words, valueWords, leftOutWords, total > 0 ? unplacedWords : nil]
      .compactMap(\.self)
  }

  /// How many rows besides fit no table, in a sentence; nil where there are none.
  package var unplacedWords: String? {
    guard unplaced > 0 else { return nil }
    return unplaced == 1
      ? "One row besides fits no table that is known." : "\(grouped(unplaced)) rows besides fit no table that is known."
  }

  /// How many records were set aside, in a sentence; nil where none was.
  public var setAsideWords: String? {
    guard setAside > 0 else { return nil }
    return "\(counted(setAside, "record")) \(setAside == 1 ? "was" : "were") set aside."
  }

  /// `Recovered 49,432 of 54,769 records (90 %), 40,439 of them doubtful because …`, without its stop.
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
      return "No records were recovered in tables of their own, and \(counted(unplaced, "row")) "
        + "\(unplaced == 1 ? "fits" : "fit") no table that is known"
    }
    // Where all that are known came out, and something else has not, the sentences behind it tell what.
    let line =
      isWithoutSome && recovered == total && !hasUnknown
      ? "Recovered \(counted(recovered, "record"))"
      : "Recovered \(grouped(recovered)) of \(roughly)\(counted(total, "record")) (\(percentWords))"
    return [line, doubtWords].compactMap(\.self).joined(separator: ", ")
  }

  /// `40,439 of them doubtful because …`; nil where none is doubtful.
  public var doubtWords: String? {
    guard doubtful > 0 else { return nil }
    let reasons = reasonsByCount.filter { $0 != .notNoted }.map(\.words)
    guard !reasons.isEmpty else { return "\(grouped(doubtful)) of them doubtful" }
    return "\(grouped(doubtful)) of them doubtful because \(reasons.joined(separator: ", or because "))"
  }

  /// The reasons, that of most records first.
  public var reasonsByCount: [DoubtReason] {
    DoubtReason.allCases.filter { (doubtReasons[$0] ?? 0) > 0 }
      .ordered { (doubtReasons[$0] ?? 0, $1.rawValue) > (doubtReasons[$1] ?? 0, $0.rawValue) }
  }

  /// How many are lost and what that stands on, in a sentence; nil where none is.
  public var lossWords: String? {
    guard lost > 0 else { return hasUnknown ? unknownWords : nil }
    var text = "\(isRough ? "About " : "")\(counted(lost, "record")) \(lost == 1 ? "is" : "are") lost"
    if let basis = basisWords { text += ", \(basis)" }
    return text + "." + (hasUnknown ? " " + unknownWords : "")
  }

  /// How many values of recovered records were set aside, in a sentence; nil where none was.
  public var valueWords: String? {
    guard valuesSetAside > 0 else { return nil }
    let isOne = valuesSetAside == 1
    return
      "\(counted(valuesSetAside, "value")) that \(isOne ? "has" : "have") no column \(isOne ? "was" : "were") set aside."
  }

  /// What a migration left out of recovered records, in a sentence; nil where it left out nothing.
  package var leftOutWords: String? {
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

  /// `90 %`, `about 90 %`, `at most 90 %`, `unknown` or, of records without some of their values or pairs, `not all`: the share
  /// that was recovered, for a list.
  public var share: String { isRough ? "about \(mostWords)" : isShareUnknown ? "unknown" : percentWords }

  /// `3`, `about 3`, `at least 3` or `unknown`: the number of lost records in a table.
  public var lostNumber: String { hasUnknown && lost == 0 ? "unknown" : roughly + grouped(lost) }

  /// What goes before a number that stands for more or less.
  public var roughly: String { isRough ? "about " : hasUnknown ? "at least " : "" }

  /// Whether nothing but an unknown loss tells the share from 100 %, or no record is known of at all.
  private var isShareUnknown: Bool { percent == nil && (mostPercent == 100 || total == 0) }

  private var percentWords: String {
    if isShareUnknown { return "share unknown" }
    if isWithoutSome, recovered == total, total > 0 { return "not all" }
    return hasUnknown && !isRough ? "at most \(mostWords)" : mostWords
  }

  /// The most that the share can be, with a place behind the point where it is nearly all: `99.9 %` of 17,661 of 17,662.
  private var mostWords: String {
    guard mostPercent == 99, recovered < total else { return "\(mostPercent) %" }
    let tenth = total.dividingFullWidth(recovered.multipliedFullWidth(by: 1000)).quotient % 10
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
