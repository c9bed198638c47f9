import Backup
import HTTPServer
import ManagedObjectModel
import Platform
import SystemPackage

struct BackupPage: InspectorPage {
  let store: ListedStore
  let backup: StoredBackup
  let place: FolderPlace
  let chain: PagePart<[BackupIdentifier]>

  init(_ store: ListedStore, _ backup: StoredBackup, _ place: FolderPlace, _ parts: InspectorParts) {
    self.store = store
    self.backup = backup
    self.place = place
    chain = PagePart { try BackupCatalog(of: place).chain(of: backup.id).map(\.id) }
  }

  var title: String { "Backup of \(store.name)" }
  var mayAge: Bool { true }
  var crumbs: [Crumb] { [.stores] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "store": ["id": store.id.text, "kind": "backup", "name": store.name], "backup": backup.id,
      "state": backup.stateWords.words, "bytes": backup.bytes, "manifest": backup.manifest.map(Self.payload),
      "proof": backup.proof, "chain": chain,
      "problems": backup.problems.map { ["code": $0.code.rawValue, "words": printable($0.words)] },
    ])
  }

  /// The manifest without block digests.
  private static func payload(_ manifest: BackupManifest) -> JSON.Object {
    [
      "date": manifest.date, "kind": manifest.kind, "reason": manifest.reason, "tags": manifest.tags,
      "parent": manifest.parent, "contentBytes": manifest.contentBytes,
      "path": printable(manifest.store.path.text), "entities": manifest.entities,
    ]
  }

  func content(_ frame: PageFrame) -> HTML {
    let state = backup.stateWords
    let restore = HTML.when(
      backup.manifest != nil && backup.manifest?.kind != .evidence,
      .button("Restore …", .store(store.id, "restore"), isMain: true))
    let actions = HTML.when(frame.allowsActions, .actions(restore, .button("Verify …", .store(store.id, "verify"))))
    return frame.overview(
      of: store, title, "<p>\(HTML.tag(state.words, state.tone)) <code>\(backup.id.description)</code></p>",
      actions: actions,
      """
      \(problems)
      <div class="columns"><div>\(entities)</div><div>\(facts(frame))\(proof(frame))</div></div>
      """)
  }

  private var problems: HTML {
    guard !backup.problems.isEmpty else { return .empty }
    let items = backup.problems.map { problem -> HTML in "<li>\(sentence(printable(problem.words)))</li>" }
    return .note(.bad, "<p><strong>This backup is not whole.</strong></p><ul>\(items)</ul>")
  }

  private var entities: HTML {
    guard let entities = backup.manifest?.entities else {
      return .panel("Entities", "<p>The manifest does not say how many records are in it.</p>")
    }
    let rows = entities.map { entity -> HTML in
      .row("\(printable(entity.name))", .cell("\(printable(entity.table))"), .number(entity.rows))
    }
    return .panel("Entities", .table("Entities", ["Entity", "Table", .number("Records")], rows))
  }

  private func facts(_ frame: PageFrame) -> HTML {
    let manifest = backup.manifest
    let kind: HTML? =
      switch manifest?.kind {
      case .full: "the whole store"
      case .delta: "what changed since \(manifest?.parent?.description ?? "another backup")"
      case .evidence: "the files of a damaged store, byte for byte"
      case .original: "the store as it was before a migration or a repair, as plain files"
      case nil: nil
      }
    return .panel(
      "Facts",
      .facts([
        ("Taken", Words.time(backup.id.date, now: frame.now)), ("Why", HTML(escaping: backup.reasonWords)),
        ("Of", whose.map { "<code>\(printable($0))</code>" }), ("Holds", kind),
        ("Size", manifest.map { "\(readableSize(backup.bytes)), of \(readableSize($0.contentBytes))" }),
        ("Model", manifest?.model.flatMap { $0.version ?? $0.identifiers.first }.map { HTML(escaping: printable($0)) }),
        ("Needs", chain.value.map { $0.count > 1 ? "\(counted($0.count - 1, "other backup"))" : "no other backup" }),
        ("It is in", "<code>\(printable(place.path.string))</code>"),
      ]))
  }

  /// The store's path, relative to the home if known.
  private var whose: String? { place.owner?.path?.text ?? backup.manifest?.store.path.text }

  private func proof(_ frame: PageFrame) -> HTML {
    guard let proof = backup.proof else {
      return .panel(
        "Verification",
        "<p>It was not verified yet. Verifying restores it aside, opens it, and counts its records.</p>")
    }
    let result: HTML =
      switch proof.result {
      case .proven: proof.depth == .files ? "read back whole" : "verified"
      case .failed: "failed"
      case .inconclusive: "inconclusive"
      }
    let depth: HTML =
      switch proof.depth {
      case .files: "its files were read back"
      case .restored: "it was restored, opened and counted"
      case .migrated: "it was restored and migrated to the current model"
      }
    let problems = proof.problems.map { problem -> HTML in "<li>\(sentence(printable(problem.words)))</li>" }
    return .panel(
      "Verification",
      """
      \(HTML.facts([("Result", result), ("How far", depth), ("When", Words.time(proof.date, now: frame.now))]))\
      \(problems.isEmpty ? HTML.empty : "<ul>\(problems)</ul>")
      """)
  }
}
