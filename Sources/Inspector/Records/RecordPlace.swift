import HTTPServer
import Platform
import SQLiteFormat
import Salvage

/// A side of a store and the URLs of its content.
struct RecordPlace: Sendable, Encodable {
  let store: ListedStore
  let side: SideName

  let sides: [SideName]

  let opened: OpenedSide

  /// The salvage facts of the side's records, if any.
  var salvage: SalvageFacts?

  var entities: RequestTarget { Self.entities(store.id, side) }

  static func entities(_ id: StoreID, _ side: SideName) -> RequestTarget {
    .store(id, side.description, "entities")
  }

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
        "Sides of the store", style: "tabs minor",
        sides.map { (HTML(escaping: $0.title), address($0), $0 == side) })
  }

  /// The count of doubtful records, if the side doesn't mark them.
  func doubts(of collection: RecordCollection) -> HTML {
    guard let count = salvage?.doubtful[collection.name], count > 0 else { return .empty }
    // The app may have changed an installed store.
    let verb = side == .salvaged ? (count == 1 ? "is" : "are") : (count == 1 ? "was" : "were")
    let time = side == .salvaged ? "" : " when the store was salvaged"
    let words = "\(Words.counted(count, "record")) of \(collection.name) \(verb) doubtful\(time)"
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
    switch text {
    case "original": self = .original
    case "salvaged": self = .salvaged
    case "set-aside": self = .setAside
    case "live": self = .live
    default:
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

  static func index(of segment: String, in names: [String]) -> Int? {
    if segment.hasPrefix("~n"), let index = Int(segment.dropFirst(2)), names.indices.contains(index) { return index }
    return names.firstIndex(of: segment)
  }
}

extension BrowsedStore {
  func segment(_ name: String) -> String {
    SegmentName.segment(name, at: collections.firstIndex { $0.name == name })
  }

  /// - Throws: `unknown-entity`.
  func collection(segment: String) throws -> RecordCollection {
    guard let index = SegmentName.index(of: segment, in: collections.map(\.name)) else {
      return try collection(segment)
    }
    return collections[index]
  }
}

extension RecordCollection {
  func segment(_ column: String) -> String {
    SegmentName.segment(column, at: columns.firstIndex { $0.name == column })
  }

  func column(segment: String) -> RecordColumn? {
    SegmentName.index(of: segment, in: columns.map(\.name)).map { columns[$0] }
  }
}
