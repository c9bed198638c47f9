import HTTPServer
import Lazaret

extension InspectorRoutes {
  /// Adds actions, each with a form page and a POST.
  mutating func addActions(_ parts: InspectorParts) {
    let quarantined = QuarantineActions(parts: parts)
    add(
      "salvage", "Makes a clean store of a quarantined one, or of a live store, which is quarantined first.", parts,
      quarantined.salvageForm, QuarantineActions.salvageFields, quarantined.salvage)
    add(
      "install", "Installs what was salvaged at the app's path.", parts, quarantined.installForm,
      QuarantineActions.installFields, quarantined.install)
    add(
      "release", "Puts a quarantined store back.", parts, quarantined.releaseForm, QuarantineActions.releaseFields,
      quarantined.release)
    add(
      "discard", "Removes a quarantined store for good.", parts, quarantined.discardForm,
      QuarantineActions.discardFields, quarantined.discard)
    let backup = BackupActions(parts: parts)
    add("backup", "Backs up a live store.", parts, backup.createForm, BackupActions.createFields, backup.create)
    add(
      "quarantine", "Moves a live store into quarantine.", parts, backup.quarantineForm,
      BackupActions.quarantineFields, backup.quarantine)
    add("verify", "Proves a backup.", parts, backup.verifyForm, BackupActions.verifyFields, backup.verify)
    add("restore", "Restores a backup over the store that it was taken of.", parts, backup.restoreForm, []) {
      store, _ in
      try backup.restore(store)
    }
    addRepair(parts)
    action("/work/{job}/cancel", about: "Ends a job; everything is left as it was.", .identifier) { _, _, id in
      .running(try parts.work.cancel(id))
    }
    page("/work/{job}", about: "How far a job is, or what came of it.", .identifier) { _, id in
      JobPage(job: try parts.work.job(id).orRefuse(.notFound, "there is no such job any more"))
    }
  }

  /// Adds the repair of live stores.
  private mutating func addRepair(_ parts: InspectorParts) {
    let repair = RepairActions(parts: parts)
    add(
      "repair", "Adds what a sound live store lacks of its own version of the model, on a copy.", parts,
      repair.repairForm, RepairActions.repairFields, repair.repair)
    add("check", "Compares the records of a live store with its own model.", parts, repair.checkForm, []) { store, _ in
      try repair.check(store)
    }
    page(
      "/stores/{id}/repaired",
      about: "What the last repair of a store did, where its original is, and how it is undone.", .store
    ) { _, id in try RepairedPage(parts.catalogue.store(id), parts) }
  }

  mutating func add(
    _ name: String, _ about: String, _ parts: InspectorParts,
    _ form: @escaping @Sendable (ListedStore, Bool) throws -> ActionForm, _ fields: [DocumentedRoute.Field],
    _ perform: @escaping @Sendable (ListedStore, FormData) throws -> ActionAnswer
  ) {
    let catalogue = parts.catalogue
    page("/stores/{id}/\(name)", about: "Asks before: \(about)", .store) { _, id in
      let store = try catalogue.store(id)
      var form = try form(store, true)
      if catalogue.isCopy(store) { form.obstacle = .copy }
      return form
    }
    action("/stores/{id}/\(name)", about: about, .store, fields: fields) { _, data, id in
      let store = try catalogue.store(id)
      // The POST refuses copies as the page does.
      if catalogue.isCopy(store) { throw Problem.copy.refusal }
      if let obstacle = try form(store, false).obstacle { throw obstacle.refusal }
      return try perform(store, data)
    }
  }
}

extension Problem {
  fileprivate static let copy = Problem(
    .conflict, code: "bundle-copy", title: "Not here.",
    detail: "The bundle lies in object storage, and what is here is a copy of its store.",
    hint: "Download the bundle, and work on its store where it is yours.")

  var refusal: Refusal { Refusal(.conflict, detail.hasSuffix(".") ? String(detail.dropLast()) : detail) }
}

struct JobPage: InspectorPage {
  let job: RunningWork.Job

  var title: String { job.title }
  var section: PageSection { .work }
  var crumbs: [Crumb] { [Crumb("Running work", .to("work"))] }

  func encode(to encoder: any Encoder) throws { try job.encode(to: encoder) }

  func content(_ frame: PageFrame) -> HTML {
    guard !job.isRunning else {
      return """
        <div data-events="\(frame.events)"><h1>\(title)</h1>\(job.html(frame, isLinked: false))\
        <p class="soft">It goes on while you look at other pages.</p>\
        <noscript><p><a href="\(frame.target)">Look again</a></p></noscript></div>
        """
    }
    let isDone = job.state == .done
    let next = HTML.button(isDone ? "See what came of it" : "Back", job.target, isMain: isDone)
    let time: HTML = job.ended.map { "<p class=\"soft\">\(Words.time($0, now: frame.now))</p>" } ?? .empty
    return "<h1>\(title)</h1>\(job.html(frame, isLinked: false))\(time)<p class=\"row\">\(next)</p>"
  }
}
