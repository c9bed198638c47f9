// A module that imports this one imports the errors that its interface speaks of along with it.
@_exported public import Failures
