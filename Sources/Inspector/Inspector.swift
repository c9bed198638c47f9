package import HTTPServer
package import Inbox
internal import Lazaret
package import Logging
internal import ManagedObjectModel
internal import ObjectStorage
import PersistentStore
package import Platform
package import SupportBundle
package import SystemPackage

/// The inspector: quarantined stores, their damage and their records, as pages and as JSON.
///
/// It works on values: a test gives it requests and gets responses, without any socket. Looking changes no byte of any store.
package final class Inspector: Sendable {
  /// The folder with the catalogue of quarantined stores and with `Backups/`.
  package let home: FilePath

  /// The file system, the clock and the source of identifiers.
  package let surroundings: Surroundings

  /// Who may look.
  package let sessions: Sessions

  /// The models that were given, by which stores are salvaged, browsed and planned.
  package let models: [InspectorModel]

  /// Whether actions are offered; a read-only inspector shows and exports.
  package let allowsActions: Bool

  /// What is running, and what has ended lately.
  package let work: RunningWork

  /// The stores of the home.
  package let catalogue: StoreCatalogue

  /// The stylesheet, the scripts and the icon.
  let files: StaticFiles

  private let routes: InspectorRoutes

  /// An inspector.
  ///
  /// - Parameters:
  ///   - options: the home and what else it is about.
  ///   - sessions: who may look.
  /// - Throws: `FileError` where the folder with the page's own files cannot be read.
  package init(
    _ options: InspectorOptions, sessions: Sessions, surroundings: Surroundings = .machine
  ) throws {
    home = options.home
    models = options.models
    allowsActions = options.allowsActions
    self.surroundings = surroundings
    self.sessions = sessions
    work = RunningWork(surroundings: surroundings)
    catalogue = StoreCatalogue(home: options.home, inbox: options.inbox, surroundings: surroundings)
    files = try StaticFiles(in: options.publicFolder, surroundings.fileSystem)
    let gate = PageGate(
      sessions: sessions, work: work, home: options.home, allowsActions: options.allowsActions,
      hasInbox: options.inbox != nil, now: surroundings.now)
    var routes = InspectorRoutes(gate)
    let parts = InspectorParts(
      home: options.home, surroundings: surroundings, models: options.models, catalogue: catalogue, sessions: sessions,
      work: work,
      receiver: options.receiver,
      sender: Sender(
        of: Outbox(home: options.home, surroundings: surroundings), over: options.transport),
      inbox: options.inbox, sides: Self.sides(options, surroundings), logger: options.logger,
      allowsActions: options.allowsActions)
    routes.addDoor(sessions, work)
    routes.addFiles(files)
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
    routes.addService(ServiceState(options, work, surroundings))
    routes.addAPI()
    self.routes = routes
  }

  /// The records of the home's stores, by the models that were given.
  private static func sides(_ options: InspectorOptions, _ surroundings: Surroundings) -> StoreSides {
    let models = options.models.compactMap { model -> ModelBundle? in
      guard case .coreData(let bundle) = model.model else { return nil }
      return bundle
    }
    let sides = StoreSides(home: options.home, models: models, surroundings: surroundings)
    // What cannot be removed now is removed at another start; nothing depends on it.
    try? sides.cleanCache()
    return sides
  }

  /// Everything that is answered, as it is documented.
  package var documentedRoutes: [DocumentedRoute] { routes.documented }

  /// The answer to a request with a body that its header decides: without a session, or at no address.
  package func respondEarly(to request: Request) -> Response? { routes.respondEarly(to: request) }

  /// The answer to a request; every error is a page, or a problem in JSON.
  package func respond(to request: Request) -> Response { routes.respond(to: request) }
}

/// The stylesheet, the scripts and the icon, read once when the inspector begins.
///
/// No name of a request is ever a path: each file has a route of its own.
struct StaticFiles: Sendable {
  struct File: Sendable {
    let name: String
    let type: String
    let bytes: BytesInMemory
    let tag: EntityTag
  }

  let files: [File]

  /// Reads a folder; what is no stylesheet, script or picture, or is larger than a megabyte, is left out.
  ///
  /// - Throws: `FileError` where the folder, or a file in it, cannot be read.
  init(in folder: FilePath, _ fileSystem: FileSystem) throws {
    var files: [File] = []
    for name in try fileSystem.entries(of: folder).sorted(by: { $0.string < $1.string }) {
      let path = folder.appending(name)
      guard let type = Self.type(of: path.extension), !name.string.hasPrefix("."),
        let status = try fileSystem.status(of: path), status.kind == .regular
      else { continue }
      let bytes = try fileSystem.contents(of: path, limit: 1 << 20)
      guard let tag = EntityTag(FileDigest(of: bytes).hexadecimal) else { continue }
      files.append(File(name: name.string, type: type, bytes: BytesInMemory(bytes), tag: tag))
    }
    self.files = files
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

extension InspectorRoutes {
  /// The page's own files; they tell nothing, so they need no session.
  mutating func addFiles(_ files: StaticFiles) {
    for file in files.files {
      open("/public/\(file.name)", about: "A file of the pages.", type: file.type) { request in
        .ranges(file.bytes, tag: file.tag, type: file.type, for: request)
      }
    }
  }
}

/// What an inspector is about.
package struct InspectorOptions: Sendable {
  /// The folder with the catalogue of quarantined stores and with `Backups/`.
  package var home: FilePath

  /// The folder with the stylesheet and the scripts, `Public/`.
  package var publicFolder: FilePath

  /// The models by which stores are salvaged, browsed and planned; the first is the one that is proposed.
  package var models: [InspectorModel] = []

  /// Whether actions are offered.
  package var allowsActions = true

  /// Who receives bundles that are sent from here; none if nil.
  package var receiver: InspectorReceiver?

  /// Over what they are sent.
  package var transport: any UploadTransport = CurlTransport()

  /// The inbox that bundles arrive in; nil where none is received.
  package var inbox: Inbox?

  /// What counts the requests, for `/metrics`; nil where none are counted.
  package var meter: RequestMeter?

  /// The addresses besides those of this machine that may read `/metrics`.
  package var metricsReaders: Set<ClientAddress> = []

  /// What is told of repairs as they go on, as `lazaret repair` tells it; nothing unless given.
  package var logger = Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }

  /// An inspector of a home.
  package init(home: FilePath, publicFolder: FilePath) {
    self.home = home
    self.publicFolder = publicFolder
  }
}
