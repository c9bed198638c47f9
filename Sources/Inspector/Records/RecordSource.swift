import Backup
import HTTPServer
import Lazaret
import Platform
import Salvage
import SystemPackage

/// Supplies record pages with stores, records and bytes.
final class RecordSource: Sendable {
  enum Found<Value> {
    case ready(Value)
    case preparing(PreparingPage)

    /// The page on it, or the one on its preparation.
    func page(_ make: (Value) throws -> any InspectorPage) rethrows -> any InspectorPage {
      switch self {
      case .ready(let value): try make(value)
      case .preparing(let page): page
      }
    }

    /// - Throws: ``Refusal`` 503 during the preparation.
    func value() throws(Refusal) -> Value {
      guard case .ready(let value) = self else {
        throw Refusal(.serviceUnavailable, "the records are still being read; try again in a moment")
      }
      return value
    }
  }

  let parts: InspectorParts
  private let comparisons = RecentValues<String, SideComparison>(capacity: 4)
  private let bytes = RecentValues<String, EvidencePages>(capacity: 4)
  private let salvages = RecentValues<String, SalvageFacts>(capacity: 4)
  private let listed = RecentValues<StoreID, Listed>(capacity: 64)

  /// A recent listing, which saves reading all receipts and manifests for each page.
  private struct Listed {
    var store: ListedStore
    var sides: [SideName]
    var time: ContinuousClock.Instant
  }

  private static let memory: Duration = .seconds(2)

  init(_ parts: InspectorParts) { self.parts = parts }

  private var sides: StoreSides { parts.sides }
  private var fileSystem: FileSystem { parts.surroundings.fileSystem }

  // MARK: Sides

  func store(_ id: StoreID) throws -> (store: ListedStore, sides: [SideName]) {
    let now = ContinuousClock.now
    if let known = listed[id], now - known.time < Self.memory { return (known.store, known.sides) }
    let store = try parts.catalogue.store(id)
    let sides = try sideNames(of: store)
    listed.keep(Listed(store: store, sides: sides, time: now), for: id)
    return (store, sides)
  }

  /// The sides in display order.
  func sideNames(of store: ListedStore) throws -> [SideName] {
    switch store.kind {
    case .quarantined(let quarantined, _):
      var names: [SideName] = store.isMissing ? [] : [.original]
      if let salvage = store.salvage {
        if try fileSystem.status(of: salvage.store.main) != nil { names.append(.salvaged) }
        if try fileSystem.status(of: salvage.setAside) != nil { names.append(.setAside) }
      }
      if let place = quarantined.receipt?.originalPath.path {
        if try live(at: place) != nil { names.append(.live) }
        names += try backups(of: place, sayingSomethingOf: quarantined.evidence)
      }
      return names
    case .live(let files): return try [.live, .original] + backups(of: files.main)
    case .backup: return [.backup(store.id)]
    }
  }

  func side(_ id: StoreID, _ name: SideName, _ request: Request) throws -> Found<RecordPlace> {
    let (store, names) = try store(id)
    if name == .original { try store.requireFiles() }
    guard try names.contains(name) || isBackup(name, of: store), let side = try storeSide(of: store, name) else {
      throw Refusal(.notFound, "this store has no such version")
    }
    switch try sides.open(side, isFresh: request.query["_copy"] == "new") {
    case .ready(let opened):
      let isInstalled = name == .live && store.quarantined?.receipt?.salvage?.installed != nil
      let facts = name == .salvaged || isInstalled ? facts(of: store) : nil
      return .ready(RecordPlace(store: store, side: name, sides: names, opened: opened, salvage: facts))
    case .preparing(let progress):
      return .preparing(PreparingPage(store: store, side: name, progress: progress, target: request.target))
    }
  }

  func sides(
    _ id: StoreID, _ first: SideName, _ second: SideName, _ request: Request
  ) throws -> Found<ComparedSides> {
    // Both start before either is awaited.
    let one = try side(id, first, request)
    let other = try side(id, second, request)
    switch (one, other) {
    case (.preparing(let page), _), (_, .preparing(let page)): return .preparing(page)
    case (.ready(let one), .ready(let other)):
      return .ready(ComparedSides(first: one, second: other, comparison: try comparison(one, other)))
    }
  }

  /// The salvage report's facts, if readable.
  private func facts(of store: ListedStore) -> SalvageFacts? {
    guard let path = store.salvage?.report, let status = try? fileSystem.status(of: path) else { return nil }
    let key = "\(path) \(status.size) \(status.identity) \(status.modified)"
    return salvages.value(key) { (try? SalvageReport.read(path, in: fileSystem)).map { SalvageFacts($0) } }
  }

  private func storeSide(of store: ListedStore, _ name: SideName) throws -> StoreSide? {
    switch (name, store.kind) {
    case (.original, .quarantined(let quarantined, _)):
      return .evidence(quarantined.files, sha256: quarantined.receipt?.files.map(\.sha256) ?? [])
    case (.original, .live(let files)): return .evidence(files, sha256: [])
    case (.live, .live(let files)): return .live(files)
    case (.salvaged, .quarantined): return store.salvage.map { .file($0.store) }
    case (.setAside, .quarantined): return store.salvage.map { .file(StoreFileSet(main: $0.setAside)) }
    case (.live, .quarantined(let quarantined, _)):
      return try quarantined.receipt?.originalPath.path.flatMap { try live(at: $0) }.map { .live($0) }
    case (.backup(let id), _):
      guard case .backup(let backup, let place) = try parts.catalogue.store(id).kind else { return nil }
      return .backup(backup.id, place)
    default: return nil
    }
  }

  /// Returns the live store at a path if the catalogue lists it, so receipts lead to no other files.
  private func live(at place: FilePath) throws -> StoreFileSet? {
    for store in try parts.catalogue.live() {
      if case .live(let files) = store.kind, files.main == place { return files }
    }
    return nil
  }

  /// Whether a side is a backup of the store's path, offered or not: the user asks to compare.
  private func isBackup(_ name: SideName, of store: ListedStore) throws -> Bool {
    guard case .quarantined(let quarantined, _) = store.kind, let place = quarantined.receipt?.originalPath.path else {
      return false
    }
    return try backups(of: place).contains(name)
  }

  private static let maximumBackups = 12

  private func backups(of place: FilePath, sayingSomethingOf scope: EvidenceScope? = nil) throws -> [SideName] {
    let all = try parts.catalogue.backups(of: place).filter { listed in
      guard let scope, let backup = listed.backup?.backup else { return true }
      return backup.exclusion(from: scope) == nil
    }
    return all.prefix(Self.maximumBackups).map { .backup($0.id) }
  }

  // MARK: Bytes

  /// - Throws: for backups, which need unpacking, and missing files.
  func pages(of store: ListedStore) throws -> EvidencePages {
    let files = try store.files(
      orRefuse: Refusal(.notFound, "a backup is packed, and has no pages of its own"))
    let facts = try files.members(in: fileSystem).map { member in
      "\(member.path) \(member.status.size) \(member.status.identity) \(member.status.modified)"
    }
    let key = facts.joined(separator: "\u{0}")
    if let known = bytes[key] { return known }
    let made = try EvidencePages(files.main, in: fileSystem)
    bytes.keep(made, for: key)
    return made
  }

  // MARK: Comparisons

  /// Compares two sides; cached while both are open.
  func comparison(_ first: RecordPlace, _ second: RecordPlace) throws -> SideComparison {
    let key = "\(first.opened.store.path)\u{0}\(second.opened.store.path)"
    if let known = comparisons[key], known.first === first.opened.store, known.second === second.opened.store {
      return known
    }
    let made = try SideComparison(first.opened.store, second.opened.store)
    comparisons.keep(made, for: key)
    return made
  }
}

/// A salvage report's facts; the salvaged store holds no marks itself.
struct SalvageFacts: Sendable, Hashable {
  /// The doubtful records by entity or table.
  var doubtful: [String: Int64]

  var recordsSetAside: Int64

  var pairsSetAside: Int64

  init(_ report: SalvageReport) {
    let doubts = report.entities.filter { $0.doubtful > 0 }.map { ($0.name, $0.doubtful) }
    doubtful = Dictionary(doubts, uniquingKeysWith: +)
    recordsSetAside = report.count.setAside
    pairsSetAside = report.count.pairs.setAside
  }

  /// The number set aside among one version's own.
  func setAside(_ count: Int64, arePairs: Bool) -> Int64 { min(count, arePairs ? pairsSetAside : recordsSetAside) }
}

struct PreparingPage: InspectorPage {
  let store: ListedStore
  let side: SideName
  let progress: SideProgress
  let target: RequestTarget

  var title: String { "Reading \(store.name)" }
  var crumbs: [Crumb] { [.stores, Crumb(store.name, .store(store.id))] }
  var scripts: [String] { ["records.js"] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode(["store": store.id.text, "side": side.description])
    try progress.encode(to: encoder)
  }

  func content(_ frame: PageFrame) -> HTML {
    """
    <div class="empty" data-reload="700"><h1>\(title)</h1>
    <p>\(side.words) This is done once, into a private copy; the store itself is not touched.</p>
    \(progress.bar)<p class="soft" role="status">\(sentence(progress.words))</p>
    <p><a class="button" href="\(target)">See whether it is done</a></p></div>
    """
  }
}

extension SideProgress: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode(["preparing": true, "phase": words, "fraction": fraction])
  }

  var bar: HTML {
    fraction.map { "<progress value=\"\(String($0))\" max=\"1\" aria-label=\"Progress\"></progress>" }
      ?? "<progress aria-label=\"Progress\"></progress>"
  }
}
