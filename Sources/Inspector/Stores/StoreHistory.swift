import Backup
import Foundation
import HTTPServer
import Lazaret
import Migration
import Platform
import SystemPackage

/// What happened to a store's place, oldest first: quarantines, salvages, backups, migrations and repairs.
struct StoreHistory: Sendable, Encodable {
  struct Event: Sendable, Encodable {
    var date: Timestamp

    /// What, in a word for programs.
    var kind: String

    /// What, in a few words.
    var title: String

    /// More of it, in a sentence; nil for nothing.
    var words: String?

    /// What it was done to or made; nil where nothing of it is here.
    var location: RequestTarget?

    /// Which of the two kinds of good and bad it is.
    var tone: HTML.Tone

    private enum CodingKeys: String, CodingKey {
      case date, kind, title, words, location
    }

    /// Writes it without its colour.
    func encode(to encoder: any Encoder) throws {
      try encoder.encode(["date": date, "kind": kind, "title": title, "words": words, "location": location])
    }
  }

  let events: [Event]

  /// The most events that are shown; the oldest are left out.
  private static let maximumEvents = 200

  /// The history of a place.
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
          date: date, kind: "backup", title: "Backed up", words: "\(backup.reasonWords) \(Words.size(backup.bytes)).",
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

  /// The migrations and repairs that the home has lines of; none where two stores of the home have the name.
  private static func migrations(of place: FilePath, _ parts: InspectorParts) throws -> [Event] {
    let path = parts.home.appending("migrations.jsonl")
    let fileSystem = parts.surroundings.fileSystem
    guard let name = place.lastComponent, try fileSystem.status(of: path, followingLinks: false)?.kind == .regular,
      try parts.catalogue.live().count(where: { $0.files?.main.lastComponent == name }) <= 1
    else { return [] }
    let text = String(decoding: try fileSystem.contents(of: path, limit: 1 << 20), as: UTF8.self)
    return text.split(separator: "\n").compactMap { line in
      // A line that is none tells nothing, and takes no other with it.
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

  /// The timeline; empty where nothing is known.
  ///
  /// - Parameter store: the store whose page it is on, whose own events are not linked.
  func html(_ frame: PageFrame, on store: ListedStore) -> HTML {
    guard !events.isEmpty else { return .empty }
    let own = RequestTarget.store(store.id)
    let items = events.map { event -> HTML in
      let title: HTML =
        if let location = event.location, location != own {
          "<a href=\"\(location)\"><strong>\(event.title)</strong></a>"
        } else {
          "<strong>\(event.title)</strong>"
        }
      let words: HTML = event.words.map { "<br><span class=\"soft\">\($0)</span>" } ?? .empty
      return """
        <li class="\(event.tone.rawValue)"><time datetime="\(event.date.rfc3339)">\(Words.date(event.date))</time>\
        \(title)\(words)</li>
        """
    }
    return .panel("History of the store", "<ol class=\"timeline\">\(items)</ol>")
  }
}

/// What happened to a quarantined store, oldest first.
struct Timeline: Sendable {
  let moments: [Receipt.Moment]

  func html(now: Timestamp) -> HTML {
    let items = moments.map { moment -> HTML in
      let path: HTML = moment.path.map { "<br><code>\(printable($0.text))</code>" } ?? .empty
      let words: HTML = moment.words.map { "<br><span class=\"soft\">\(printable($0))</span>" } ?? .empty
      return """
        <li class="\(Self.tone(moment.kind).rawValue)"><time datetime="\(printable(moment.date))">\
        \(Timestamp(moment.date).map(Words.date) ?? printable(moment.date))</time>\
        <strong>\(Self.title(moment.kind))</strong>\(words)\(path)</li>
        """
    }
    return "<ol class=\"timeline\">\(items)</ol>"
  }

  /// What kind of thing it was, in a few words.
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

  /// Whether it was good or bad.
  static func tone(_ kind: Receipt.Moment.Kind) -> HTML.Tone {
    switch kind {
    case .quarantined, .salvageFailed: .bad
    case .salvaged, .installed, .released: .good
    default: .plain
    }
  }
}
