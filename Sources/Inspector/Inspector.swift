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

/// The inspector: stores, damage and records, as HTML and JSON.
///
/// It maps request values to responses, so tests need no socket. Viewing changes no byte of any store.
package final class Inspector: Sendable {
  package let sessions: Sessions

  package let work: RunningWork

  package let catalogue: StoreCatalogue

  private let routes: InspectorRoutes

  /// - Throws: `FileError` if the public folder can't be read.
  package init(
    _ options: InspectorOptions, sessions: Sessions, surroundings: Surroundings = .machine
  ) throws {
    self.sessions = sessions
    work = RunningWork(surroundings: surroundings)
    catalogue = StoreCatalogue(home: options.home, inbox: options.inbox, surroundings: surroundings)
    let files = try StaticFiles(in: options.publicFolder, surroundings.fileSystem)
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

  private static func sides(_ options: InspectorOptions, _ surroundings: Surroundings) -> StoreSides {
    let sides = StoreSides(
      home: options.home, models: options.models.compactMap(\.bundle), surroundings: surroundings)
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

/// The stylesheet, scripts and icon.
///
/// Each has its own route, so no requested name is used as a path.
struct StaticFiles: Sendable {
  struct File: Sendable {
    let name: String
    let type: String
    let bytes: BytesInMemory
    let tag: EntityTag
  }

  let files: [File]

  /// Reads a folder, except other types and files above 1 MB.
  ///
  /// - Throws: `FileError` if the folder or a file can't be read.
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
  /// Adds the static files, which hold no secrets and need no session.
  mutating func addFiles(_ files: StaticFiles) {
    for file in files.files {
      open("/public/\(file.name)", about: "A file of the pages.", type: file.type) { request in
        .ranges(file.bytes, tag: file.tag, type: file.type, for: request)
      }
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
