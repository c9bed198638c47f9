package import Platform
package import Salvage
package import SupportBundle

/// A received bundle.
///
/// The sender's data is hostile: bounded and escaped when shown, never a path.
package struct InboxBundle: Sendable, Hashable, Codable {
  package enum State: String, Sendable, Hashable, Codable, CaseIterable {
    case received

    /// Encrypted, and this process has no key.
    case encrypted

    /// Invalid; see ``failure``.
    case refused

    /// Checked and unpacked, without a store.
    case unpacked

    /// Checked and unpacked, with its store in quarantine.
    case quarantined
  }

  package struct Failure: Sendable, Hashable, Codable {
    package var code: String

    /// The message as a sentence.
    package var words: String

    package init(code: String, words: String) {
      self.code = code
      self.words = words
    }
  }

  /// A file of the bag.
  package struct File: Sendable, Hashable, Codable {
    /// The path below `data/`.
    package var name: String

    package var bytes: Int64

    package init(name: String, bytes: Int64) {
      self.name = name
      self.bytes = bytes
    }
  }

  /// The identifier, also its folder's name.
  package var id: String

  package var sender: String

  /// When its upload was complete, in RFC 3339.
  package var date: String

  /// The digest of the received file, in hexadecimal.
  package var sha256: String

  /// The size of the received file.
  package var bytes: Int64

  /// The sender's file name.
  package var fileName: String?

  package var isEncrypted: Bool

  package var state: State

  package var failure: Failure?

  /// The share of a store in it; the sender's claim until opened.
  package var level: String?

  /// The app, as the bundle says.
  package var app: String?

  /// The store's name, as the bundle says.
  package var store: String?

  /// The facts on the store; nil until opened or if unreadable.
  package var facts: BundleFacts?

  /// The files below `data/`; at most ``maximumFiles``.
  package var files: [File] = []

  /// The number of all files.
  package var fileCount = 0

  package var account: BundleAccount?

  /// The damage's fingerprint; nil until opened or if unknown.
  package var fingerprint: DamageFingerprint?

  /// The store's name in the bundle's own quarantine.
  package var quarantineID: String?

  /// The archive of the unpacked files; nil in the home.
  package var opened: Archive?

  /// The archive of the files that the salvage added; nil in the home.
  package var salvaged: Archive?

  static let maximumFiles = 1000

  package init(
    id: String, sender: String, date: Timestamp, sha256: String, bytes: Int64, fileName: String?, level: String?,
    isEncrypted: Bool
  ) {
    self.id = id
    self.sender = sender
    self.date = date.rfc3339
    self.sha256 = sha256
    self.bytes = bytes
    self.fileName = fileName
    self.level = level
    self.isEncrypted = isEncrypted
    state = .received
  }

  mutating func receiveAgain() {
    state = .received
    failure = nil
  }

  /// Refuses it and drops its results.
  mutating func refuse(_ failure: Failure) {
    state = .refused
    self.failure = failure
    quarantineID = nil
    opened = nil
    salvaged = nil
  }

  /// The archives in the order of unpacking.
  package var archives: [Archive] { [opened, salvaged].compactMap(\.self) }

  /// The texts that a search covers.
  var words: String {
    [
      id, sender, sha256, fileName, app, store, state.rawValue, failure?.code, facts?.verdict, facts?.reason,
      facts?.modelVersion, facts?.versions.app, fingerprint?.group, quarantineID,
    ].compactMap(\.self).joined(separator: "\n").lowercased()
  }
}

/// A salvage report's summary.
package struct BundleAccount: Sendable, Hashable, Codable {
  package struct Entity: Sendable, Hashable, Codable {
    /// The entity or table.
    package var name: String

    package var recovered: Int64

    package var doubtful: Int64

    package var lost: Int64

    /// Whether the lost count is exact; nil if not recorded by an earlier version.
    var lostIsExact: Bool?

    /// Intact records outside the salvaged store; nil also if not recorded by an earlier version.
    package var setAside: Int64?
  }

  /// Consecutive pages in one state.
  package struct Run: Sendable, Hashable, Codable {
    package var state: String

    package var count: Int64
  }

  /// The recovery in a few sentences; nil if not recorded by an earlier version.
  package var words: String?

  /// The page map's runs; empty for a very large map.
  package var runs: [Run]

  /// At most ``maximumEntities``.
  package var entities: [Entity]

  /// Many-to-many pairs by table; nil also if not recorded by an earlier version.
  var pairs: [Entity]?

  /// Rows that fit no table; nil also if not recorded by an earlier version.
  var unplacedRows: Int64?

  /// The likely causes, a sentence each.
  package var causes: [String]

  /// The most entities, causes and runs.
  static let maximumEntities = 500
  static let maximumCauses = 20
  static let maximumRuns = 4000

  /// The cap of each number, so that sums of hostile numbers cannot overflow.
  private static let maximumNumber: Int64 = 1 << 48

  init(_ report: SalvageReport) {
    func bounded(_ text: String) -> String { String(text.prefix(500)) }
    func number(_ number: Int64) -> Int64 { min(max(0, number), Self.maximumNumber) }
    words = bounded(report.count.words)
    func account(_ entity: SalvageReport.Entity) -> Entity {
      Entity(
        name: bounded(entity.name), recovered: number(entity.recovered), doubtful: number(entity.doubtful),
        lost: number(entity.lost), lostIsExact: entity.isLostExact,
        setAside: entity.setAside > 0 ? number(entity.setAside) : nil)
    }
    entities = report.records.prefix(Self.maximumEntities).map(account)
    pairs = report.pairs.isEmpty ? nil : report.pairs.prefix(Self.maximumEntities).map(account)
    unplacedRows = report.unplacedRows > 0 ? number(report.unplacedRows) : nil
    causes = report.causes.prefix(Self.maximumCauses).map { bounded($0.words) }
    var runs: [Run] = []
    for run in report.pages.runs {
      let state = run.state.rawValue
      if runs.last?.state == state {
        runs[runs.count - 1].count = number(runs[runs.count - 1].count + number(Int64(run.pages.count)))
      } else {
        runs.append(Run(state: state, count: number(Int64(run.pages.count))))
      }
      if runs.count > Self.maximumRuns { break }
    }
    self.runs = runs.count > Self.maximumRuns ? [] : runs
  }
}

extension BundleAccount.Entity {
  package var count: RecoveryCount {
    let isUnknown = lost == 0 && lostIsExact == false
    var count = RecoveryCount(isComplete: lost == 0 && !isUnknown && doubtful == 0 && setAside ?? 0 == 0)
    count.add(
      recovered: recovered, doubtful: doubtful, reasons: [:], setAside: setAside ?? 0, lost: lost,
      isExact: lostIsExact ?? true, basis: isUnknown ? .unknown : nil)
    return count
  }
}
