package import HTTPServer
import Inbox
import RecordBrowsing
import Sending
package import StoreCoordination

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
