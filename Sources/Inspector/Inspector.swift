package import HTTPServer
package import Inbox
internal import Lazaret
package import Logging
internal import ManagedObjectModel
internal import ObjectStorage
package import PersistentStore
package import Platform
package import SupportBundle
package import SystemPackage

/// The inspector: stores, damage and records, as HTML and JSON.
///
/// It maps request values to responses, so tests need no socket. Viewing changes no byte of any store.
package final class Inspector: Sendable {
  package let sessions: Sessions

  package let work: RunningWork

  package let catalogue: StoreCatalogue

  private let routes: InspectorRoutes

  /// - Throws: `FileError` if the public folder can't be read.
  package init(_ options: InspectorOptions, sessions: Sessions, surroundings: Surroundings = .machine) throws {
    self.sessions = sessions
    work = RunningWork(surroundings: surroundings)
    catalogue = StoreCatalogue(home: options.home, inbox: options.inbox, surroundings: surroundings)
    var routes = InspectorRoutes(PageGate(sessions: sessions, work: work, options: options, now: surroundings.now))
    routes.addDoor(sessions, work)
    try routes.addFiles(in: options.publicFolder, surroundings.fileSystem)
    let parts = InspectorParts(
      options: options, surroundings: surroundings, catalogue: catalogue, sessions: sessions, work: work,
      sides: Self.sides(options, surroundings))
    routes.addStores(parts)
    routes.addRecords(parts)
    routes.addModels(parts)
    routes.addActions(parts)
    routes.addBundles(parts)
    if let inbox = options.inbox {
      routes.addInbox(inbox, parts)
      inbox.changes.listen { [work] in work.tell("inbox") }
      inbox.storage.uses.ask { [work] bundle in work.isWorking(atBundle: bundle) }
    }
    routes.addService(
      ServiceState(options: options, work: work, surroundings: surroundings, started: surroundings.now()))
    routes.addAPI()
    self.routes = routes
  }

  private static func sides(_ options: InspectorOptions, _ surroundings: Surroundings) -> StoreSides {
    let sides = StoreSides(home: options.home, models: options.models.compactMap(\.bundle), surroundings: surroundings)
    // A later start removes the rest.
    try? sides.cleanCache()
    return sides
  }

  package var documentedRoutes: [DocumentedRoute] { routes.documented }

  /// Answers a request whose header alone decides.
  package func respondEarly(to request: Request) -> Response? { routes.respondEarly(to: request) }

  /// Answers a request; errors become a page or a JSON problem.
  package func respond(to request: Request) -> Response { routes.respond(to: request) }
}

extension InspectorRoutes {
  /// Adds the stylesheet, scripts and icon, which hold no secrets and need no session.
  ///
  /// Each has its own route, so no requested name is used as a path. Other types and files above 1 MB are left out.
  ///
  /// - Throws: `FileError` if the folder or a file can't be read.
  mutating func addFiles(in folder: FilePath, _ fileSystem: FileSystem) throws {
    for name in try fileSystem.entries(of: folder).sorted(by: { $0.string < $1.string }) {
      let path = folder.appending(name)
      guard let type = Self.type(of: path.extension), !name.string.hasPrefix("."),
        let status = try fileSystem.status(of: path), status.kind == .regular
      else { continue }
      let bytes = try fileSystem.contents(of: path, limit: 1 << 20)
      guard let tag = EntityTag(FileDigest(of: bytes).hexadecimal) else { continue }
      open("/public/\(name.string)", about: "A file of the pages.", type: type) { request in
        .ranges(BytesInMemory(bytes), tag: tag, type: type, for: request)
      }
    }
  }

  private static func type(of suffix: String?) -> String? {
    switch suffix {
    case "css": "text/css; charset=utf-8"
    case "js": "text/javascript; charset=utf-8"
    case "svg": "image/svg+xml"
    default: nil
    }
  }
}

package struct InspectorOptions: Sendable {
  /// The folder of the quarantine catalogue and `Backups/`.
  package var home: FilePath

  /// The folder of the stylesheet and scripts, `Public/`.
  var publicFolder: FilePath

  /// The models; the first is the default.
  package var models: [InspectorModel] = []

  /// Whether actions are offered; a read-only inspector only shows and exports.
  package var allowsActions = true

  package var receiver: InspectorReceiver?

  package var transport: any UploadTransport = CurlTransport()

  package var inbox: Inbox?

  /// The request counters for `/metrics`; nil if not counted.
  package var meter: RequestMeter?

  /// The remote addresses that may read `/metrics`.
  package var metricsReaders: Set<ClientAddress> = []

  /// The log of repairs; silent by default.
  package var logger = Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }

  package init(home: FilePath, publicFolder: FilePath) {
    self.home = home
    self.publicFolder = publicFolder
  }
}

/// The parts shared by the inspector's routes.
struct InspectorParts: Sendable {
  let options: InspectorOptions

  let surroundings: Surroundings

  /// The home's stores; the only way from a URL to a file.
  let catalogue: StoreCatalogue

  let sessions: Sessions

  let work: RunningWork

  /// The browsable sides of stores, each prepared once.
  let sides: StoreSides

  let examinations = ExaminationCache()

  let looks = ExaminationQueue()

  let repairs = RepairNotes()

  var home: FilePath { options.home }

  var models: [InspectorModel] { options.models }

  var sender: Sender { Sender(of: outbox, over: options.transport) }

  /// The home's quarantined stores, for actions.
  var quarantines: Quarantines { Quarantines(home: home, surroundings: surroundings) }

  var modelBundles: [ModelBundle] { models.compactMap(\.bundle) }

  var backups: Backups { Backups(home: home, surroundings: surroundings) }

  var exports: SupportExports { SupportExports(home: home, surroundings: surroundings) }

  var outbox: Outbox { Outbox(home: home, surroundings: surroundings) }

  /// The selectable models, proposing the best fit.
  ///
  /// - Parameter sums: the digests of the store's files.
  func modelOptions(for files: StoreFileSet, sums: [String] = []) -> [(value: String, label: String)] {
    let best = (fittingModel(of: files) ?? foundModel(of: files, sums))?.name
    let options = models.sorted { first, second in first.name == best && second.name != best }.map {
      (value: $0.name, label: "\($0.name) (\(printable($0.model.currentVersionName)))")
    }
    let own = (value: "", label: "What the store says of itself")
    return best == nil && models.count > 1 ? [own] + options : options + [own]
  }

  /// The model with the entities of a store's found rows, if any.
  ///
  /// A damaged store may lack header and metadata while other pages still identify its rows.
  private func foundModel(of files: StoreFileSet, _ sums: [String]) -> InspectorModel? {
    guard let side = PagePart({ try sides.existing(.evidence(files, sha256: sums)) }).value ?? nil else { return nil }
    let names = Set(side.store.collections.filter(\.isEntity).map(\.name))
    var best: (model: InspectorModel, common: Int)?
    for model in models {
      guard let bundle = model.bundle else { continue }
      let common = names.intersection(bundle.current.model.entities.keys).count
      if common > best?.common ?? 0 { best = (model, common) }
    }
    // A single shared entity name is not enough.
    return best.flatMap { $0.common * 2 >= names.count ? $0.model : nil }
  }

  /// Examines every page of a store by its best-fitting model, read-only.
  func examined(
    _ files: StoreFileSet, countsRecords: Bool = false
  ) -> (model: InspectorModel?, examination: PagePart<Examination>) {
    let fitting = fittingModel(of: files)
    let model = judging(fitting)
    let part = PagePart {
      try examinations.examination(of: files, model: model, countsRecords: countsRecords, in: surroundings.fileSystem)
    }
    return (fitting ?? models.first, part)
  }

  /// The best fit, else the only given model; otherwise the store is judged by itself.
  private func judging(_ fitting: InspectorModel?) -> InspectorModel? {
    fitting ?? (models.count == 1 ? models.first : nil)
  }

  /// Examines every page; nil on timeout, when it continues in the background.
  func examined(_ files: StoreFileSet, by end: ContinuousClock.Instant) -> PagePart<Examination>? {
    let model = judging(fittingModel(of: files))
    let fileSystem = surroundings.fileSystem
    if let kept = PagePart({ try examinations.kept(files, model: model, in: fileSystem) }).value ?? nil {
      return PagePart { kept }
    }
    return looks.part(of: files.main, by: end) { [examinations] in
      try examinations.examination(of: files, model: model, countsRecords: false, in: fileSystem)
    }
  }

  /// The best-fitting model, or nil.
  func fittingModel(of files: StoreFileSet) -> InspectorModel? {
    let ranked = Examiner(fileSystem: surroundings.fileSystem).ranked(models, for: files.main) { $0.model }
    return ranked.first { $0.fit > 0 }?.model
  }

  /// - Throws: ``Refusal`` 404 for an unknown name.
  func listedModel(_ name: String) throws(Refusal) -> InspectorModel {
    try models.first(where: { $0.name == name }).orRefuse(.notFound, "no model of that name was given")
  }

  /// - Throws: ``Refusal`` 400 for an unknown name.
  func model(_ name: String?) throws(Refusal) -> AppModel? {
    guard let name, !name.isEmpty else { return nil }
    let model = try models.first(where: { $0.name == name }).orRefuse(.badRequest, "there is no model of that name")
    return model.model
  }

  /// Describes the file at a store's path.
  func present(_ place: StoreFileSet) throws -> String? {
    let members = try place.members(in: surroundings.fileSystem)
    guard let first = members.first else { return nil }
    let bytes = members.reduce(Int64(0)) { $0 &+ $1.status.size }
    return "\(readableSize(bytes)), changed \(Words.date(first.status.modified))"
  }
}

package struct InspectorModel: Sendable {
  /// The unique name in URLs, if possible the file's.
  let name: String

  let model: AppModel

  /// The Core Data model; nil for a schema.
  var bundle: ModelBundle? {
    guard case .coreData(let bundle) = model else { return nil }
    return bundle
  }

  /// Adds a number to taken names.
  package static func named(_ models: [(name: String, model: AppModel)]) -> [InspectorModel] {
    var taken: Set<String> = []
    return models.map { name, model in
      let plain = StoreID.plain(name)
      var unique = plain
      var number = 2
      while !taken.insert(unique).inserted {
        unique = "\(plain)-\(number)"
        number += 1
      }
      return InspectorModel(name: unique, model: model)
    }
  }
}
