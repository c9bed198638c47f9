import Backup
import Foundation
import HTTPServer
import Lazaret
import Migration
import Platform
import SystemPackage

/// The history of a store's path, oldest first.
struct StoreHistory: Sendable, Encodable {
  struct Event: Sendable, Encodable {
    var date: Timestamp

    /// The kind for programs.
    var kind: String

    var title: String

    var words: String?

    /// The page of its subject or result, if here.
    var location: RequestTarget?

    var tone: HTML.Tone

    func encode(to encoder: any Encoder) throws {
      try encoder.encode(["date": date, "kind": kind, "title": title, "words": words, "location": location])
    }
  }

  let events: [Event]

  /// The most events shown; the oldest are omitted.
  private static let maximumEvents = 200

  init(of place: FilePath, _ parts: InspectorParts) throws {
    var events: [Event] = []
    for listed in try parts.catalogue.quarantined() {
      guard let receipt = listed.quarantined?.receipt, receipt.originalPath.path == place else { continue }
      events += receipt.history.compactMap { Self.event($0, of: listed) }
    }
    for listed in try parts.catalogue.backups() {
      guard let (backup, folder) = listed.backup, let date = listed.date,
        (folder.owner?.present ?? backup.manifest?.store.path.path) == place
      else { continue }
      events.append(
        Event(
          date: date, kind: "backup", title: "Backed up", words: "\(backup.reasonWords) \(readableSize(backup.bytes)).",
          location: .store(listed.id), tone: backup.isWhole ? .plain : .bad))
    }
    events += try Self.migrations(of: place, parts)
    self.events = Array(
      events.enumerated().sorted { ($0.element.date, $0.offset) < ($1.element.date, $1.offset) }.map(\.element)
        .suffix(Self.maximumEvents))
  }

  private static func event(_ moment: Receipt.Moment, of store: ListedStore) -> Event? {
    Timestamp(moment.date).map { date in
      Event(
        date: date, kind: moment.kind.rawValue, title: Timeline.title(moment.kind), words: moment.words.map(printable),
        location: .store(store.id), tone: Timeline.tone(moment.kind))
    }
  }

  /// The migrations and repairs logged in the home; empty if two stores share the name.
  private static func migrations(of place: FilePath, _ parts: InspectorParts) throws -> [Event] {
    let path = parts.home.appending("migrations.jsonl")
    let fileSystem = parts.surroundings.fileSystem
    guard let name = place.lastComponent, try fileSystem.status(of: path, followingLinks: false)?.kind == .regular,
      try parts.catalogue.live().count(where: { $0.files?.main.lastComponent == name }) <= 1
    else { return [] }
    let text = String(decoding: try fileSystem.contents(of: path, limit: 1 << 20), as: UTF8.self)
    return text.split(separator: "\n").compactMap { line in
      // An invalid line is skipped.
      guard let run = try? JSONDecoder().decode(MigrationMetrics.self, from: Data(line.utf8)), run.store == name.string,
        let date = Timestamp(run.date)
      else { return nil }
      let isRepair = run.from == run.to
      let way =
        isRepair ? "It stayed at \(printable(run.to))" : "From \(printable(run.from ?? "?")) to \(printable(run.to))"
      return Event(
        date: date, kind: isRepair ? "repair" : "migration", title: isRepair ? "Repaired" : "Migrated",
        words: "\(way), \(counted(Int64(run.rows), "record")).", location: nil, tone: .good)
    }
  }

  func encode(to encoder: any Encoder) throws { try events.encode(to: encoder) }

  /// - Parameter store: the page's store; its own events stay unlinked.
  func html(_ frame: PageFrame, on store: ListedStore) -> HTML {
    guard !events.isEmpty else { return .empty }
    let own = RequestTarget.store(store.id)
    let items = events.map { event -> HTML in
      let name: HTML = "<strong>\(event.title)</strong>"
      let title = event.location.map { $0 == own ? name : "<a href=\"\($0)\">\(name)</a>" } ?? name
      let words: HTML = event.words.map { "<br><span class=\"soft\">\($0)</span>" } ?? .empty
      return Timeline.item(event.tone, event.date.rfc3339, Words.date(event.date), title + words)
    }
    return .panel("History of the store", "<ol class=\"timeline\">\(items)</ol>")
  }
}

struct Timeline: Sendable {
  let moments: [Receipt.Moment]

  var html: HTML {
    let items = moments.map { moment -> HTML in
      let path: HTML = moment.path.map { "<br><code>\(printable($0.text))</code>" } ?? .empty
      let words: HTML = moment.words.map { "<br><span class=\"soft\">\(printable($0))</span>" } ?? .empty
      let date = printable(moment.date)
      return Self.item(
        Self.tone(moment.kind), date, Timestamp(moment.date).map(Words.date) ?? date,
        "<strong>\(Self.title(moment.kind))</strong>\(words)\(path)")
    }
    return "<ol class=\"timeline\">\(items)</ol>"
  }

  static func item(_ tone: HTML.Tone, _ date: String, _ shownDate: String, _ content: HTML) -> HTML {
    "<li class=\"\(tone.rawValue)\"><time datetime=\"\(date)\">\(shownDate)</time>\(content)</li>"
  }

  static func title(_ kind: Receipt.Moment.Kind) -> String {
    switch kind {
    case .quarantined: "Quarantined"
    case .salvaged: "Salvaged"
    case .salvageFailed: "A salvage gave nothing"
    case .installed: "Installed at the app's path"
    case .replaced: "An empty store took its place"
    case .exported: "Exported"
    case .sent: "Sent"
    case .received: "Received with a bundle"
    case .released: "Put back"
    default: sentence(printable(kind.rawValue.replacing("-", with: " ")))
    }
  }

  static func tone(_ kind: Receipt.Moment.Kind) -> HTML.Tone {
    switch kind {
    case .quarantined, .salvageFailed: .bad
    case .salvaged, .installed, .released: .good
    default: .plain
    }
  }
}
