import HTTPServer
import Platform
package import SupportBundle
package import SystemPackage

/// The bundles written here and the outbox.
struct BundlesPage: InspectorPage {
  let bundles: PagePart<[ListedBundle]>
  let outbox: PagePart<Outbox.Listing>

  init(_ catalogue: BundleCatalogue, _ outbox: Outbox) {
    bundles = PagePart { try catalogue.bundles() }
    self.outbox = PagePart { try outbox.listing() }
  }

  var title: String { "Bundles" }
  var mayAge: Bool { true }
  var section: PageSection { .bundles }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode(["bundles": bundles, "outbox": outbox.map(\.entries)])
  }

  func content(_ frame: PageFrame) -> HTML {
    """
    <div data-events="\(frame.events)"><h1>\(title)</h1>
    <p class="soft">What was exported for support stays here until you remove it. Nothing leaves this machine by itself.</p>
    \(bundles.html { list(of: $0, frame) })
    \(outbox.html { sent($0, frame) })</div>
    """
  }

  private func list(of bundles: [ListedBundle], _ frame: PageFrame) -> HTML {
    guard !bundles.isEmpty else {
      return """
        <div class="empty"><p>No bundle was written yet. Open a store and choose “Export”: it shows you what a bundle for \
        support would hold, and writes it when you agree.</p></div>
        """
    }
    let rows = bundles.map { bundle -> HTML in
      .row(
        "<a href=\"\(bundle.target)\">\(printable(bundle.name))</a>", wraps: true, .size(bundle.bytes),
        .cell(Words.time(bundle.date, now: frame.now)),
        .cell(bundle.isEncrypted ? .tag("encrypted", .good) : .tag("not encrypted", .warn)))
    }
    return .panel(
      "Written", .table("Bundles that were written", ["Bundle", .number("Size"), "When", "Who can read it"], rows))
  }

  private func sent(_ listing: Outbox.Listing, _ frame: PageFrame) -> HTML {
    guard !listing.entries.isEmpty || !listing.unreadable.isEmpty else { return .empty }
    let rows = listing.entries.map { entry -> HTML in
      .row(
        "\(printable(entry.name))", wraps: true, .cell(OutboxWords.tag(entry)),
        .cell("\(printable(entry.endpoint))", "wrap"), .cell(OutboxWords.outcome(entry, now: frame.now)),
        .cell(OutboxWords.actions(entry, frame)))
    }
    let broken = HTML.when(
      !listing.unreadable.isEmpty,
      .note(.warn, "<p>\(counted(listing.unreadable.count, "entry", "entries")) of the outbox cannot be read.</p>"))
    return .panel(
      "Outbox", .table("The outbox", ["Bundle", "State", "To", "What came of it", .unnamed("Actions")], rows) + broken)
  }
}

enum OutboxWords {
  static func tag(_ entry: OutboxEntry) -> HTML {
    switch entry.state {
    case .waiting: .tag("waiting", .warn)
    case .sending: .tag("being sent", .accent)
    case .sent: .tag("sent", .good)
    case .failed: .tag("failed", .bad)
    case .cancelled: .tag("taken back")
    }
  }

  /// The receipt, or the progress and any obstacle.
  static func outcome(_ entry: OutboxEntry, now: Timestamp) -> HTML {
    if let receipt = entry.receipt {
      return "<code>\(printable(receipt.id))</code>, \(Words.time(receipt.date, now: now))"
    }
    var words = entry.offset > 0 ? "\(readableSize(entry.offset)) of \(readableSize(entry.bytes)) are there" : ""
    if let error = entry.lastError { words += (words.isEmpty ? "" : "; ") + "last: \(printable(error))" }
    return HTML(escaping: words)
  }

  static func actions(_ entry: OutboxEntry, _ frame: PageFrame) -> HTML {
    guard frame.allowsActions, !entry.isOver, entry.state != .sending else { return .empty }
    let place = RequestTarget.to("outbox", entry.id)
    return """
      <div class="row no-print">\(frame.button("Try again", place.appending("retry")))\
      \(frame.button("Take back", place.appending("cancel")))</div>
      """
  }
}

/// One bundle: its content, its digest, and its uploads.
struct BundlePage: InspectorPage {
  let bundle: ListedBundle
  let preview: PagePart<BundlePreview>
  let sendings: PagePart<[OutboxEntry]>

  init(_ bundle: ListedBundle, _ catalogue: BundleCatalogue, _ outbox: Outbox) {
    self.bundle = bundle
    let preview = PagePart { try catalogue.preview(of: bundle) }
    self.preview = preview
    sendings = PagePart { try outbox.listing().entries.filter { $0.sha256 == preview.value?.sha256 } }
  }

  var title: String { printable(bundle.name) }
  var section: PageSection { .bundles }
  var crumbs: [Crumb] { [Crumb("Bundles", .to("bundles"))] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "name": bundle.name, "path": printable(bundle.path.string), "bytes": bundle.bytes, "date": bundle.date,
      "encrypted": preview.value?.isEncrypted ?? bundle.isEncrypted, "level": preview.value?.level,
      "sha256": preview.map(\.sha256), "sent": sendings,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let remove = HTML.when(frame.allowsActions, .button("Remove …", bundle.target.appending("discard")))
    let send = HTML.when(frame.allowsActions, .button("Send …", bundle.target.appending("send"), isMain: true))
    return """
      <div data-events="\(frame.events)"><div class="head"><div><h1 class="wrap">\(title)</h1></div>\
      <nav class="row no-print" aria-label="Actions">\(send)\
      <a class="button" href="\(bundle.target.appending("file"))" download>Download</a>\(remove)</nav></div>
      \(preview.html { HTML.panel("Facts", facts($0, frame)) })
      \(sendings.html { HTML.panel("Sent", sent($0, frame)) })</div>
      """
  }

  private func facts(_ preview: BundlePreview, _ frame: PageFrame) -> HTML {
    let level: HTML? = preview.level.map { "\($0.rawValue): \($0.words)" }
    return .facts([
      ("Size", HTML(escaping: readableSize(preview.bytes))), ("Written", Words.time(bundle.date, now: frame.now)),
      ("Level", level),
      (
        "Who can read it",
        preview.isEncrypted ? "only the holders of the keys it is encrypted to" : "everyone who gets the file"
      ),
      ("SHA-256", "<code class=\"wrap\">\(preview.sha256)</code>"),
      ("It is at", "<code>\(printable(bundle.path.string))</code>"),
    ])
  }

  private func sent(_ entries: [OutboxEntry], _ frame: PageFrame) -> HTML {
    guard !entries.isEmpty else { return "<p>It was not sent from here.</p>" }
    let items = entries.map { entry -> HTML in
      """
      <li>\(OutboxWords.tag(entry)) to \(printable(entry.endpoint)) \(OutboxWords.outcome(entry, now: frame.now))\
      \(OutboxWords.actions(entry, frame))</li>
      """
    }
    return "<ul class=\"plain-words\">\(items)</ul>"
  }
}

package struct InspectorReceiver: Sendable {
  var address: ReceiverAddress

  /// The file with the sender's token, if any.
  var tokenFile: FilePath?

  package init(_ address: ReceiverAddress, tokenFile: FilePath? = nil) {
    self.address = address
    self.tokenFile = tokenFile
  }
}

/// The bundles in the home's `Exports/`.
///
/// A URL leads to a bundle only by comparing names with existing files.
final class BundleCatalogue: Sendable {
  static let folder: FilePath.Component = "Exports"

  private let home: FilePath
  private let surroundings: Surroundings

  private let sums = RecentValues<ListedBundle, BundlePreview>(capacity: 200)

  init(home: FilePath, surroundings: Surroundings) {
    self.home = home
    self.surroundings = surroundings
  }

  /// The folder, which may not exist yet.
  var path: FilePath { home.appending(Self.folder) }

  func makeFolder() throws -> FilePath {
    try surroundings.fileSystem.makeDirectory(path, permissions: .ownerReadWriteExecute)
    return path
  }

  func bundles() throws -> [ListedBundle] {
    let fileSystem = surroundings.fileSystem
    guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
    var bundles: [ListedBundle] = []
    for name in try fileSystem.entries(of: path) {
      let text = name.string
      guard text.hasSuffix(".lazaret.tar.gz") || text.hasSuffix(".lazaret.tar.gz.age"), !text.hasPrefix("."),
        let status = try fileSystem.status(of: path.appending(name), followingLinks: false), status.kind == .regular
      else { continue }
      bundles.append(ListedBundle(name: text, path: path.appending(name), bytes: status.size, date: status.modified))
    }
    return bundles.sorted { ($0.date, $0.name) > ($1.date, $1.name) }
  }

  /// - Throws: ``Refusal`` 404 if there is no such bundle.
  func bundle(_ name: String) throws -> ListedBundle {
    try bundles().first(where: { $0.name == name }).orRefuse(.notFound, "there is no bundle of that name")
  }

  /// Returns a preview with digest, computed once.
  func preview(of bundle: ListedBundle) throws -> BundlePreview {
    if let known = sums[bundle] { return known }
    let preview = try BundlePreview(of: bundle.path, home: home, surroundings: surroundings)
    sums.keep(preview, for: bundle)
    return preview
  }
}

struct ListedBundle: Sendable, Hashable, Encodable {
  /// The file name, also used in URLs.
  let name: String

  let path: FilePath

  let bytes: Int64

  let date: Timestamp

  var isEncrypted: Bool { name.hasSuffix(".age") }

  var target: RequestTarget { .to("bundles", name) }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode(["name": name, "bytes": bytes, "date": date, "encrypted": isEncrypted, "location": target])
  }
}
