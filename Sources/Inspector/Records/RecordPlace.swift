import Backup
import HTTPServer
import Lazaret
import Platform
import SQLiteFormat
import Salvage
import SystemPackage

/// A side of a store and the URLs of its content.
struct RecordPlace: Sendable, Encodable {
  let store: ListedStore
  let side: SideName

  let sides: [SideName]

  let opened: OpenedSide

  /// The salvage facts of the side's records, if any.
  var salvage: SalvageFacts?

  var entities: RequestTarget { Self.entities(store.id, side) }

  static func entities(_ id: StoreID, _ side: SideName) -> RequestTarget { .store(id, side.description, "entities") }

  var search: RequestTarget { .store(store.id, side.description, "search") }

  func records(_ collection: String, _ query: [Query.Item] = []) -> RequestTarget {
    entities.appending(opened.store.segment(collection), "records", query: query)
  }

  /// The list on another side; set-aside rows have their own tables, so the entity list replaces it.
  func records(_ collection: String, on side: SideName) -> RequestTarget {
    let entities = Self.entities(store.id, side)
    guard hasSameEntities(side) else { return entities }
    return entities.appending(opened.store.segment(collection), "records")
  }

  /// The record on another side by its key in the store; the list if the key may be missing.
  func record(_ row: RecordPage.Row, _ key: String, in collection: String, on side: SideName) -> RequestTarget {
    let list = records(collection, on: side)
    guard hasSameEntities(side), side == self.side || row.state.isLive else { return list }
    return list.appending(side == self.side ? row.key.description : key)
  }

  private func hasSameEntities(_ side: SideName) -> Bool {
    side == self.side || (side != .setAside && self.side != .setAside)
  }

  func record(_ key: RecordKey, in collection: String) -> RequestTarget {
    records(collection).appending(key.description)
  }

  func related(at index: Int, of key: RecordKey, in collection: RecordCollection) -> RequestTarget {
    let name = SegmentName.segment(collection.toMany[index].name, at: index)
    return record(key, in: collection.name).appending("related", name)
  }

  /// The URL of a value, as a page or bytes.
  func value(_ column: String, of key: RecordKey, in collection: RecordCollection, _ form: String) -> RequestTarget {
    record(key, in: collection.name).appending("values", collection.segment(column), form)
  }

  func page(_ number: UInt32, cell: Int? = nil, row: Int64? = nil, image: EvidencePages.Image? = nil) -> RequestTarget {
    let items = [
      image?.name.map { Query.Item("image", $0) }, cell.map { Query.Item("cell", String($0)) },
      row.map { Query.Item("row", String($0)) },
    ]
    return .store(store.id, "pages", String(number), query: items.compactMap(\.self))
  }

  var crumbs: [Crumb] { [.stores, Crumb(store.name, .store(store.id))] }

  func crumbs(below collection: RecordCollection) -> [Crumb] {
    crumbs + [Crumb("Records", entities), Crumb(collection.name, records(collection.name))]
  }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode(["store": store.id.text, "side": side.description, "takenAt": opened.takenAt])
  }

  /// The other sides as tabs.
  ///
  /// - Parameters:
  ///   - tab: the store's tab of this page.
  ///   - address: the same subject's URL on another side.
  func tabs(_ tab: StoreTab = .records, _ address: (SideName) -> RequestTarget) -> HTML {
    guard sides.count > 1 else { return StoreTab.bar(store, tab) }
    return StoreTab.bar(store, tab)
      + .tabs(
        "Sides of the store", style: "tabs minor", sides.map { (HTML(escaping: $0.title), address($0), $0 == side) })
  }

  /// The count of doubtful records, if the side doesn't mark them.
  func doubts(of collection: RecordCollection) -> HTML {
    guard let count = salvage?.doubtful[collection.name], count > 0 else { return .empty }
    // The app may have changed an installed store.
    let verb = side == .salvaged ? (count == 1 ? "is" : "are") : (count == 1 ? "was" : "were")
    let time = side == .salvaged ? "" : " when the store was salvaged"
    let words = "\(counted(count, "record")) of \(collection.name) \(verb) doubtful\(time)"
    guard sides.contains(.original) else { return .note(.warn, "<p>\(words). Which is not marked here.</p>") }
    let target = records(collection.name, on: .original).appending(query: [.init("_state", "doubtful")])
    return .note(
      .warn, "<p>\(words). This version does not mark them: <a href=\"\(target)\">the store as found does</a>.</p>")
  }

  func notes(_ frame: PageFrame) -> HTML {
    guard let time = opened.takenAt else { return .empty }
    var fresh = frame.target
    fresh.query = Query(fresh.query.items.filter { $0.name != "_copy" } + [.init("_copy", "new")])
    return """
      <p class="soft">As of \(Words.time(time, now: frame.now)). <a href="\(fresh)" rel="nofollow">Look again</a></p>
      """
  }
}

/// A side's name in URLs: `original`, `salvaged`, `set-aside`, `live`, `backup-2026-11-21-10-11-12-1a2b3c4d`.
enum SideName: Sendable, Hashable, CustomStringConvertible {
  /// The readable rows of the original bytes.
  case original

  case salvaged

  /// Rows left out of the salvaged store.
  case setAside

  case live

  case backup(StoreID)

  init?(_ text: String) {
    if let plain = [SideName.original, .salvaged, .setAside, .live].first(where: { $0.description == text }) {
      self = plain
    } else {
      guard text.hasPrefix("backup-"), text.utf8.count > 7, text.utf8.count <= 140 else { return nil }
      self = .backup(StoreID("b" + text.dropFirst("backup".count)))
    }
  }

  var description: String {
    switch self {
    case .original: "original"
    case .salvaged: "salvaged"
    case .setAside: "set-aside"
    case .live: "live"
    case .backup(let id): "backup" + id.text.dropFirst()
    }
  }

  var title: String {
    switch self {
    case .original: "As found"
    case .salvaged: "Salvaged"
    case .setAside: "Set aside"
    case .live: "Live store"
    case .backup(let id): "Backup \(Self.moment(id))"
    }
  }

  /// The name within a sentence.
  var phrase: String {
    switch self {
    case .original: "the store as found"
    case .salvaged: "the salvaged store"
    case .setAside: "what was set aside"
    case .live: "the live store"
    case .backup(let id): "the backup of \(Self.moment(id))"
    }
  }

  var words: String {
    switch self {
    case .original: "Every row that can still be read in the bytes of the store, with the place it was found at."
    case .salvaged: "The clean store that was made of them."
    case .setAside: "Rows that could not be part of the clean store, and why."
    case .live: "The store at the app's path now, as of one moment."
    case .backup: "The store as it was when the backup was taken."
    }
  }

  private static func moment(_ id: StoreID) -> String {
    // Earlier versions lack the mark of backups before the time.
    let name = id.text.drop { !$0.isNumber }.prefix(19)
    return Timestamp(String(name)).map(Words.date) ?? String(name)
  }
}

extension PathParameter where Value == SideName {
  static var side: PathParameter { PathParameter { SideName($0) } }
}

/// The URL segment of a name.
///
/// Impossible names (slashes, control characters) are given by index: `~n3`.
enum SegmentName {
  /// Returns the segment of a name at an index.
  static func segment(_ name: String, at index: Int?) -> String { isUsable(name) ? name : "~n\(index ?? 0)" }

  static func isUsable(_ name: String) -> Bool {
    let isPlain = name.unicodeScalars.allSatisfy { scalar in
      scalar.value >= 0x20 && scalar.value != 0x7F && scalar != "/" && scalar != "\\"
    }
    return isPlain && !["", ".", ".."].contains(name) && !name.hasPrefix("~") && name.utf8.count <= 200
  }

  static func segment(_ name: String, in names: [String]) -> String { segment(name, at: names.firstIndex(of: name)) }

  static func name(_ segment: String, in names: [String]) -> String? { index(of: segment, in: names).map { names[$0] } }

  static func index(of segment: String, in names: [String]) -> Int? {
    if segment.hasPrefix("~n"), let index = Int(segment.dropFirst(2)), names.indices.contains(index) { return index }
    return names.firstIndex(of: segment)
  }
}

extension BrowsedStore {
  func segment(_ name: String) -> String { SegmentName.segment(name, at: collections.firstIndex { $0.name == name }) }

  /// - Throws: `unknown-entity`.
  func collection(segment: String) throws -> RecordCollection {
    guard let index = SegmentName.index(of: segment, in: collections.map(\.name)) else {
      return try collection(segment)
    }
    return collections[index]
  }
}

extension RecordCollection {
  func segment(_ column: String) -> String { SegmentName.segment(column, at: columns.firstIndex { $0.name == column }) }

  func column(segment: String) -> RecordColumn? {
    SegmentName.index(of: segment, in: columns.map(\.name)).map { columns[$0] }
  }
}

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

  func sides(_ id: StoreID, _ first: SideName, _ second: SideName, _ request: Request) throws -> Found<ComparedSides> {
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
    case (.original, .quarantined(let quarantined, _)): return .evidence(quarantined.files, sha256: store.sums)
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
    try parts.catalogue.live().lazy.compactMap(\.files).first { $0.main == place }
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
    let files = try store.files(orRefuse: Refusal(.notFound, "a backup is packed, and has no pages of its own"))
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

struct PreparingPage: StoreSubpage {
  let store: ListedStore
  let side: SideName
  let progress: SideProgress
  let target: RequestTarget

  var title: String { "Reading \(store.name)" }
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
